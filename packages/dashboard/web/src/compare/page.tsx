// Several trainings side by side: what differed, what came of it, and their curves in the same charts.

import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { PictureButton, save } from "../charts/buttons";
import { Charts } from "../charts/charts";
import type { Line } from "../charts/curves";
import { familyOf } from "../charts/family";
import type { Highlight } from "../charts/pointer";
import { useChartOptions } from "../charts/use_options";
import { Back, Problem, Problems, useTitle } from "../parts";
import { go } from "../route";
import { axesOf, keptText } from "./axes";
import "./compare.css";
import { tableCsv } from "./csv";
import { fieldsOf } from "./fields";
import { Legend } from "./legend";
import { ordered } from "./order";
import { Parallel } from "./parallel";
import { usePastSides } from "./past";
import { Picker } from "./picker";
import { STATISTICS, type Statistic, firstOf, metricsOf } from "./results";
import { SameInAll } from "./same";
import { COMPARED, beyond, compared, comparedPast, useComparison } from "./store";
import { CompareTable } from "./table";
import { thinned } from "./thin";
import { type Training, tones, trainingsOf } from "./training";
import { type CompareView, type Kept, readView, writeView } from "./view";

/** Noise hides which of several lines is above another. */
const SMOOTHING = 0.6;

export function ComparePage({ query }: { query: URLSearchParams }) {
  const jobs = compared(query);
  const past = comparedPast(query);
  const left = beyond(query);
  const { sides, problem } = useComparison(jobs);
  const pastSides = usePastSides(past);
  const [isChoosing, setChoosing] = useState(false);
  const colours = useRef<ReadonlyMap<string, number>>(new Map());
  const ids = [...jobs, ...past];
  colours.current = tones(colours.current, ids);
  useTitle("Compare TrainJobs");
  const trainings = useMemo(() => trainingsOf(jobs, sides, past, pastSides, colours.current), [sides, pastSides, ids.join(" ")]);
  const show = (view: CompareView) => move(writeView(query, view));
  const choose = (chosen: Iterable<string>) => move(withChosen(query, [...chosen]));
  const chooser = (
    <button type="button" class={ids.length === 0 ? "primary" : ""} onClick={() => setChoosing(true)}>
      Choose trainings ...
    </button>
  );
  return (
    <main class="wide compare">
      <Back to="/">All TrainJobs</Back>
      <div class="title">
        <h1 tabIndex={-1}>
          Compare TrainJobs {trainings.length > 0 && <span class="namespace">{trainings.length}</span>}
        </h1>
        {ids.length > 0 && <div class="actions">{chooser}</div>}
      </div>
      {problem && <Problem>{problem}</Problem>}
      <Problems of={[left > 0 ? `The address names ${left} more: ${COMPARED} can be compared at once.` : ""]} />
      {trainings.length > 0 ? (
        <Compared trainings={trainings} view={readView(query)} onView={show} onRemove={(id) => choose(ids.filter((each) => each !== id))} />
      ) : (
        <div class="empty">
          <h2>Put trainings side by side</h2>
          <p>Their parameters and results come in one table, their metrics in the same charts. Choose up to {COMPARED}, also of those that the cluster has forgotten.</p>
          {chooser}
          <p class="quiet">The check boxes of the list do the same.</p>
        </div>
      )}
      {isChoosing && <Picker chosen={new Set(ids)} onChange={choose} onClose={() => setChoosing(false)} />}
    </main>
  );
}

function move(query: URLSearchParams): void {
  go(query.size > 0 ? `/compare?${query}` : "/compare", "replace");
}

/** The query with these trainings: those of the history have a uid. */
export function withChosen(query: URLSearchParams, ids: readonly string[]): URLSearchParams {
  const next = new URLSearchParams(query);
  next.delete("job");
  next.delete("past");
  for (const id of ids) next.append(id.split("/").length === 2 ? "job" : "past", id);
  return next;
}

interface ComparedProperties {
  trainings: readonly Training[];
  view: CompareView;
  onView(view: CompareView): void;
  onRemove(id: string): void;
}

function Compared({ trainings, view, onView, onRemove }: ComparedProperties) {
  const [label, setLabel] = useState("");
  const highlight: Highlight = { label, set: setLabel };
  const { differing, same } = useMemo(() => fieldsOf(trainings), [trainings]);
  const metrics = useMemo(() => metricsOf(trainings), [trainings]);
  const first = useMemo(() => firstOf(metrics), [metrics]);
  const axes = useMemo(() => axesOf(differing, first, view.statistic), [differing, first, view.statistic]);
  const kept = view.kept.filter(({ key }) => axes.some((axis) => axis.key === key));
  const fits = (index: number) => kept.every((each) => axes.find(({ key }) => key === each.key)!.fits(index, each));
  const places = trainings.map((_, index) => index).filter(fits);
  const order = ordered(places, trainings, differing, metrics, view);
  const inCharts = places.map((index) => trainings[index]!).filter(({ id }) => !view.off.includes(id));
  const lines = useMemo(() => thinned(inCharts.flatMap(linesOf)), [trainings, inCharts.map(({ id }) => id).join(" ")]);
  const keep = (key: string, next: Kept | null) => onView({ ...view, kept: [...view.kept.filter((each) => each.key !== key), ...(next ? [next] : [])] });
  const toggle = (id: string) => onView({ ...view, off: view.off.includes(id) ? view.off.filter((each) => each !== id) : [...view.off, id] });
  const setting = useChartOptions(SMOOTHING);
  return (
    <>
      <Controls view={view} onView={onView} hidden={metrics.length - first.length}>
        <PictureButton
          picture="csv"
          label="Download the table as CSV"
          onClick={() => save("comparison.csv", new Blob([tableCsv(trainings, order, metrics, [...differing, ...same])], { type: "text/csv" }))}
        />
      </Controls>
      <CompareTable
        trainings={trainings}
        order={order}
        fields={differing}
        metrics={view.hasAllMetrics ? metrics : first}
        view={view}
        highlight={highlight}
        onSort={(key) => onView({ ...view, ...sorted(view, key, metrics.some((metric) => metric.key === key && metric.better === "more")) })}
        onRemove={onRemove}
      />
      <SameInAll fields={same} count={trainings.filter(({ recipe }) => recipe).length} />
      {trainings.length > 1 && axes.length > 1 && (
        <section aria-labelledby="parallel-title">
          <h2 id="parallel-title">Parameters and results</h2>
          <KeptChips kept={kept} axes={axes} count={[places.length, trainings.length]} onKeep={keep} onAll={() => onView({ ...view, kept: [] })} />
          <Parallel lines={trainings.map(({ id, label, tone }) => ({ id, label, look: `tone-${tone}` }))} axes={axes} kept={kept} isShown={fits} highlight={highlight} onKeep={keep} />
        </section>
      )}
      {trainings.some(({ curves }) => curves.size > 0) ? (
        <section aria-labelledby="charts-title">
          <h2 id="charts-title">Metrics</h2>
          <Legend
            trainings={order.map((index) => trainings[index]!)}
            off={view.off}
            highlight={highlight}
            hasEvaluation={lines.some(({ points }) => familyOf(points).side === "eval")}
            onToggle={toggle}
          />
          <Charts lines={lines} isCompared highlight={highlight} {...setting} />
        </section>
      ) : (
        <p class="nothing">None of them has metrics that can be read: they are there as long as the first pod is, or in the history.</p>
      )}
    </>
  );
}

/** The first click sorts the best first, or upwards; the second the other way, and the third not at all. */
export function sorted({ sort, isReversed }: Pick<CompareView, "sort" | "isReversed">, key: string, isMoreBetter: boolean): Pick<CompareView, "sort" | "isReversed"> {
  if (sort !== key) return { sort: key, isReversed: isMoreBetter };
  return isReversed === isMoreBetter ? { sort, isReversed: !isReversed } : { sort: "", isReversed: false };
}

export function linesOf({ curves, label, tone }: Pick<Training, "curves" | "label" | "tone">): Line[] {
  return Array.from(curves, ([metric, points]) => ({ id: `${label} ${metric}`, label, points, tone }));
}

interface ControlsProperties extends Pick<ComparedProperties, "view" | "onView"> {
  /** Metrics that the table leaves out. */
  hidden: number;
  children: ComponentChildren;
}

function Controls({ view, onView, hidden, children }: ControlsProperties) {
  const names: Record<Statistic, string> = { last: "last values", min: "least values", max: "greatest values" };
  return (
    <div class="filters compare-controls">
      <label>
        <span>Results are</span>
        <select value={view.statistic} onChange={(event) => onView({ ...view, statistic: event.currentTarget.value as Statistic })}>
          {STATISTICS.map((each) => (
            <option key={each} value={each}>
              {names[each]}
            </option>
          ))}
        </select>
      </label>
      {hidden > 0 && (
        <label class="check">
          <input type="checkbox" checked={view.hasAllMetrics} onChange={(event) => onView({ ...view, hasAllMetrics: event.currentTarget.checked })} />
          <span>
            {hidden} more {hidden === 1 ? "metric" : "metrics"} in the table
          </span>
        </label>
      )}
      <div class="tools">{children}</div>
    </div>
  );
}

interface KeptChipsProperties {
  /** What is counted. Default: trainings. */
  what?: string;
  kept: readonly Kept[];
  axes: readonly { key: string; title: string }[];
  count: [shown: number, all: number];
  onKeep(key: string, kept: null): void;
  onAll(): void;
}

export function KeptChips({ kept, axes, count: [shown, all], what = "trainings", onKeep, onAll }: KeptChipsProperties) {
  return (
    <div class="kept-chips">
      <span role="status">{kept.length === 0 ? <span class="quiet">Drag along an axis, or use arrow keys on it, to keep a part of it.</span> : `${shown} of ${all} ${what}`}</span>
      {kept.map((each) => {
        const title = axes.find(({ key }) => key === each.key)!.title;
        return (
          <button key={each.key} type="button" class="chip plain-chip" aria-label={`Keep all of ${title} again`} onClick={() => onKeep(each.key, null)}>
            {title} {keptText(each)} <span aria-hidden="true">×</span>
          </button>
        );
      })}
      {kept.length > 1 && (
        <button type="button" class="plain" onClick={onAll}>
          Show all
        </button>
      )}
    </div>
  );
}
