// Which trials are shown, and by which axes they are chosen; all of it is in the address.

import { useMemo, useRef } from "preact/hooks";
import { sorted } from "../compare/page";
import type { ParallelAxis } from "../compare/axes";
import { type CompareView, type Kept, readView, writeView } from "../compare/view";
import { type Importance, type Sweep, TRIAL_STATES, type Trial, type TrialState } from "../model";
import { go, useLocation } from "../route";
import { VALUE, axesOf, firstAxes } from "./axes";
import { ordered } from "./order";

export interface Selection {
  view: CompareView;
  /** Of all trials; those that are drawn are some of them where there are many parameters. */
  axes: readonly ParallelAxis[];
  drawn: readonly ParallelAxis[];
  hasAllAxes: boolean;
  /** What is kept of axes. */
  kept: readonly Kept[];
  /** The only state that is shown; null for all. */
  state: TrialState | null;
  fits(index: number): boolean;
  /** The trials that fit, in the order of the table. */
  rows: readonly Trial[];
  keep(key: string, next: Kept | null): void;
  keepAll(): void;
  sort(key: string): void;
  setState(state: TrialState | null): void;
  setAllAxes(hasAll: boolean): void;
}

export function useSelection(sweep: Sweep, trials: readonly Trial[], importance: Importance | null): Selection {
  const { path, query } = useLocation();
  const view = readView(query);
  const state = TRIAL_STATES.find((each) => each === query.get("state")) ?? null;
  const move = (next: URLSearchParams) => go(next.size > 0 ? `${path}?${next}` : path, "replace");
  const show = (changes: Partial<CompareView>) => move(writeView(query, { ...view, ...changes }));
  const axes = useMemo(() => axesOf(sweep, trials), [sweep.parameters, sweep.metric, trials]);
  const byKey = useMemo(() => new Map(axes.map((axis) => [axis.key, axis])), [axes]);
  const kept = view.kept.filter(({ key }) => byKey.has(key));
  const hasAllAxes = query.get("axes") === "all";
  const first = useFirstAxes(sweep, importance);
  const fits = (index: number) => (state === null || trials[index]!.state === state) && kept.every((each) => byKey.get(each.key)!.fits(index, each));
  return {
    view,
    axes,
    drawn: hasAllAxes ? axes : axes.filter(({ key }) => first.has(key) || kept.some((each) => each.key === key)),
    hasAllAxes,
    kept,
    state,
    fits,
    rows: ordered(
      trials.filter((_, index) => fits(index)),
      sweep,
      view,
      Date.now(),
    ),
    keep: (key, next) => show({ kept: [...view.kept.filter((each) => each.key !== key), ...(next ? [next] : [])] }),
    keepAll: () => show({ kept: [] }),
    sort: (key) => show(sorted(view, key, key === VALUE && sweep.direction === "Maximize")),
    setState: (next) => move(withValue(query, "state", next ?? "")),
    setAllAxes: (hasAll) => move(withValue(query, "axes", hasAll ? "all" : "")),
  };
}

function withValue(query: URLSearchParams, name: string, value: string): URLSearchParams {
  const next = new URLSearchParams(query);
  if (value) next.set(name, value);
  else next.delete(name);
  return next;
}

/** Which axes are drawn at first: they do not change under the eyes of a reader when further trials end. */
function useFirstAxes({ parameters }: Sweep, importance: Importance | null): ReadonlySet<string> {
  const known = useRef<ReadonlySet<string> | null>(null);
  if (importance?.method) known.current ??= firstAxes(parameters, importance);
  return known.current ?? firstAxes(parameters, null);
}
