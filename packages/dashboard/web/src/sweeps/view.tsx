// What a sweep has reached: the same of one on the cluster and of one that was recorded.

import { useMemo, useRef, useState } from "preact/hooks";
import type { Highlight } from "../charts/pointer";
import { useNow } from "../clock";
import { KeptChips, sorted } from "../compare/page";
import { Parallel } from "../compare/parallel";
import { type Kept, readView, writeView } from "../compare/view";
import { age, duration } from "../format";
import { ENDED, type Importance, type Sweep, TRIAL_STATES, type Trial, type TrialState } from "../model";
import { type Fact, Facts } from "../parts";
import { go, href, onLink, trialCopyPath, useLocation } from "../route";
import { Command } from "../shell/copy";
import { FIRST_AXES, VALUE, axesOf, firstAxes } from "./axes";
import { TrialCurves } from "./curves";
import { ImportanceBars } from "./importance";
import { countsOf, ordered } from "./order";
import { ProgressChart } from "./progress_chart";
import { labelOf, looks, ranked } from "./ranking";
import type { SweepContent } from "./store";
import { TrialTable } from "./table";
import { TrialLink, useTrialPath } from "./trial_link";

interface SweepViewProperties {
  content: SweepContent & { sweep: Sweep };
  /** Whether a trial can be trained again: its sweep is on the cluster. */
  canCopy: boolean;
}

export function SweepView({ content: { sweep, trials, importance }, canCopy }: SweepViewProperties) {
  const [label, setLabel] = useState("");
  const highlight: Highlight = { label, set: setLabel };
  const shown = trials ?? [];
  const look = useMemo(() => looks(shown, sweep.direction), [trials, sweep.direction]);
  const best = useMemo(() => bestOf(sweep, shown), [trials, sweep]);
  if (!trials) return <p role="status">Loading ...</p>;
  return (
    <>
      <Best sweep={sweep} best={best} canCopy={canCopy} />
      <div class="sweep-columns">
        <ProgressChart sweep={sweep} trials={shown} looks={look} highlight={highlight} />
        <ImportanceBars sweep={sweep} importance={importance} trials={shown} />
      </div>
      <Trials sweep={sweep} trials={shown} looks={look} best={best} importance={importance} highlight={highlight} />
      <TrialCurves sweep={sweep} trials={shown} looks={look} best={best} highlight={highlight} />
    </>
  );
}

/** The best trial: as the sweep says, or by the values where it says nothing. */
export function bestOf({ best, direction }: Pick<Sweep, "best" | "direction">, trials: readonly Trial[]): Trial | null {
  const named = best && trials.find(({ name, number }) => name === best.trainJob || number === best.number);
  return named ?? ranked(trials, direction)[0] ?? null;
}

export function SweepFacts({ sweep, trials }: { sweep: Sweep; trials: readonly Trial[] }) {
  const now = useNow();
  const counts = countsOf(trials);
  const ended = trials.length - counts.Running;
  const isOver = ENDED.has(sweep.state);
  const facts: Fact[] = [
    [
      "Trials",
      <span class="progress">
        <progress value={ended} max={Math.max(sweep.numTrials, 1)} aria-label={`Ended trials of ${sweep.name}`} />
        <span class="of">
          {ended} of {sweep.numTrials}
        </span>
      </span>,
    ],
    ["Objective", `${sweep.direction === "Maximize" ? "maximize" : "minimize"} ${sweep.metric}${sweep.aggregate === "Last" ? "" : `, ${sweep.aggregate === "Min" ? "least" : "greatest"} of a trial`}`],
    ["Algorithm", withSettings(sweep.algorithm, sweep.settings)],
    ["Pruning", sweep.pruning ? withSettings(sweep.pruning, sweep.pruningSettings) : "none"],
    ["At once", String(sweep.parallelTrials)],
    ["Failed at most", sweep.maxFailedTrials === null ? "" : String(sweep.maxFailedTrials)],
    [isOver ? "Took" : "Age", isOver ? duration((Date.parse(sweep.ended ?? "") - Date.parse(sweep.started ?? sweep.created ?? "")) / 1000) : age(sweep.created, now)],
  ];
  return (
    <div class="sweep-facts">
      <Facts of={facts} />
      <Command>{`trainer get sweep ${sweep.name} -n ${sweep.namespace}`}</Command>
    </div>
  );
}

const ALGORITHMS: Record<string, string> = { tpe: "TPE", gp: "Gaussian process", cmaEs: "CMA-ES", random: "random", grid: "grid", asha: "ASHA", median: "median" };

function withSettings(name: string, settings: Sweep["settings"]): string {
  return [ALGORITHMS[name] ?? name, ...settings.map(([key, value]) => `${words(key)} ${value}`)].join(", ");
}

function words(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function Best({ sweep, best, canCopy }: { sweep: Sweep; best: Trial | null; canCopy: boolean }) {
  const path = useTrialPath();
  const to = best && path(sweep, best);
  return (
    <section class="best-trial" aria-label="Best trial">
      <div>
        <h2>{ENDED.has(sweep.state) ? "Best" : "Best so far"}</h2>
        {best ? (
          <p class="best-value" title={best.valueText}>
            {best.valueText || "–"} <span class="quiet">{sweep.metric}</span>
          </p>
        ) : (
          <p class="quiet">No trial has a value yet.</p>
        )}
      </div>
      {best && (
        <div class="best-parameters">
          <p>
            <TrialLink sweep={sweep} trial={best}>
              {labelOf(best)}
            </TrialLink>{" "}
            {best.step !== null && <span class="quiet">step {best.step}</span>}
          </p>
          <dl class="parameters" aria-label="Parameters of the best trial" tabIndex={0}>
            {sweep.parameters.map(({ name }, index) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{best.parameters[index] ?? "–"}</dd>
              </div>
            ))}
          </dl>
        </div>
      )}
      {best && (
        <div class="actions">
          {to && (
            <a class="button" href={href(to)} onClick={onLink}>
              Open the best trial
            </a>
          )}
          {canCopy && (
            <a class="button primary" href={href(trialCopyPath(sweep, best.number))} onClick={onLink}>
              Train the best again
            </a>
          )}
        </div>
      )}
    </section>
  );
}

interface TrialsProperties {
  sweep: Sweep;
  trials: readonly Trial[];
  looks: ReadonlyMap<number, string>;
  best: Trial | null;
  importance: Importance | null;
  highlight: Highlight;
}

function Trials({ sweep, trials, looks, best, importance, highlight }: TrialsProperties) {
  const { path, query } = useLocation();
  const now = useNow();
  const toTrial = useTrialPath();
  const view = readView(query);
  const state = TRIAL_STATES.find((each) => each === query.get("state")) ?? null;
  const move = (next: URLSearchParams) => go(next.size > 0 ? `${path}?${next}` : path, "replace");
  const axes = useMemo(() => axesOf(sweep, trials), [sweep.parameters, sweep.metric, trials]);
  const kept = view.kept.filter(({ key }) => axes.some((axis) => axis.key === key));
  const isAll = query.get("axes") === "all";
  const first = useFirstAxes(sweep, importance);
  const drawn = isAll ? axes : axes.filter(({ key }) => first.has(key) || kept.some((each) => each.key === key));
  const fits = (index: number) => kept.every((each) => axes.find(({ key }) => key === each.key)!.fits(index, each)) && (state === null || trials[index]!.state === state);
  const keep = (key: string, next: Kept | null) => move(writeView(query, { ...view, kept: [...view.kept.filter((each) => each.key !== key), ...(next ? [next] : [])] }));
  const rows = ordered(trials.filter((_, index) => fits(index)), sweep, view, now);
  const lines = useMemo(() => trials.map((trial) => ({ id: String(trial.number), label: labelOf(trial), look: looks.get(trial.number) ?? "" })), [trials, looks]);
  return (
    <section aria-labelledby="trials-title">
      <h2 id="trials-title">Trials</h2>
      <StateChips trials={trials} state={state} onState={(next) => move(withValue(query, "state", next ?? ""))} />
      {trials.length === 0 && <p class="nothing">There are no trials yet.</p>}
      {trials.length > 1 && axes.length > 1 && (
        <>
          <KeptChips what="trials" kept={kept} axes={axes} count={[rows.length, trials.length]} onKeep={keep} onAll={() => move(writeView(query, { ...view, kept: [] }))} />
          <Parallel
            lines={lines}
            axes={drawn}
            kept={kept}
            isShown={fits}
            highlight={highlight}
            onKeep={keep}
            onOpen={(index) => {
              const to = toTrial(sweep, trials[index]!);
              if (to) go(to);
            }}
          />
          <div class="under-parallel">
            <ShadeLegend sweep={sweep} trials={trials} />
            {sweep.parameters.length > FIRST_AXES && (
              <label class="check">
                <input type="checkbox" checked={isAll} onChange={(event) => move(withValue(query, "axes", event.currentTarget.checked ? "all" : ""))} />
                <span>All {sweep.parameters.length} parameters</span>
              </label>
            )}
          </div>
        </>
      )}
      {trials.length > 0 && (
        <TrialTable
          sweep={sweep}
          rows={rows}
          looks={looks}
          best={best}
          highlight={highlight}
          view={view}
          onSort={(key) => move(writeView(query, { ...view, ...sorted(view, key, key === VALUE && sweep.direction === "Maximize") }))}
        />
      )}
    </section>
  );
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

const CHIPS: Record<TrialState, string> = { Running: "running", Succeeded: "done", Failed: "failed", Pruned: "pruned" };

function StateChips({ trials, state, onState }: { trials: readonly Trial[]; state: TrialState | null; onState(state: TrialState | null): void }) {
  const counts = countsOf(trials);
  return (
    <div class="chips" role="group" aria-label="State of trials">
      <button type="button" class="chip" aria-pressed={state === null} onClick={() => onState(null)}>
        All<span class="number">{trials.length}</span>
      </button>
      {TRIAL_STATES.map((each) => (
        <button key={each} type="button" class={`chip ${CHIPS[each]}`} aria-pressed={state === each} onClick={() => onState(state === each ? null : each)}>
          {each}
          <span class="number">{counts[each]}</span>
        </button>
      ))}
    </div>
  );
}

/** What the colours of the lines say. */
function ShadeLegend({ sweep, trials }: { sweep: Sweep; trials: readonly Trial[] }) {
  const order = ranked(trials, sweep.direction);
  const states = TRIAL_STATES.filter((each) => each !== "Succeeded" && trials.some(({ state }) => state === each));
  return (
    <p class="shade-legend quiet">
      {order.length > 0 && (
        <span>
          best <span class="ramp" aria-hidden="true" /> worst of {order.length}, by rank
        </span>
      )}
      {states.map((each) => (
        <span key={each}>
          <span class={`swatch trial-${each.toLowerCase()}`} aria-hidden="true" /> {each.toLowerCase()}
        </span>
      ))}
    </p>
  );
}
