// The metrics of several TrainJobs in the same charts.

import { useContext, useMemo, useState } from "preact/hooks";
import { Charts } from "../charts/charts";
import type { Line } from "../charts/curves";
import { useChartOptions } from "../charts/use_options";
import { minute, moment } from "../format";
import { Ending, endOf } from "../history/parts";
import { HasHistory } from "../history/store";
import { id } from "../list/filters";
import { useListing } from "../list/store";
import type { Past, PastList, Row } from "../model";
import { Back, Problem, Progress, State, useTitle } from "../parts";
import { useAnswer } from "../polling";
import { go, href, jobPath, onLink, pastId, pastPath } from "../route";
import { type PastSide, UNKNOWN, usePastSides } from "./past";
import { COMPARED, type Side, compared, comparedPast, useComparison } from "./store";

export function ComparePage({ query }: { query: URLSearchParams }) {
  const jobs = compared(query);
  const past = comparedPast(query);
  const { sides, problem } = useComparison(jobs);
  const pastSides = usePastSides(past);
  const setting = useChartOptions();
  useTitle("Compare TrainJobs");
  const lines = useMemo(
    () => [
      ...sides.flatMap((side, index) => linesOf(side, jobs[index] ?? "", index)),
      ...past.flatMap((each, index) => linesOf(pastSides.get(each) ?? UNKNOWN, labelOf(each, pastSides.get(each)), jobs.length + index)),
    ],
    [sides, pastSides, past.join(" ")],
  );
  const set = (nextJobs: readonly string[], nextPast: readonly string[]) => {
    const changed = new URLSearchParams(query);
    changed.delete("job");
    changed.delete("past");
    for (const job of nextJobs) changed.append("job", job);
    for (const each of nextPast) changed.append("past", each);
    go(changed.size > 0 ? `/compare?${changed}` : "/compare", "replace");
  };
  const count = jobs.length + past.length;
  return (
    <main>
      <Back to="/">All TrainJobs</Back>
      <h1 tabIndex={-1}>Compare TrainJobs</h1>
      {problem && <Problem>{problem}</Problem>}
      {count > 0 && (
        <ul class="compared">
          {jobs.map((job, index) => (
            <Compared key={job} job={job} side={sides[index]!} tone={index} onRemove={() => set(jobs.filter((each) => each !== job), past)} />
          ))}
          {past.map((id, index) => (
            <ComparedPast
              key={id}
              id={id}
              side={pastSides.get(id) ?? UNKNOWN}
              tone={jobs.length + index}
              onRemove={() => set(jobs, past.filter((each) => each !== id))}
            />
          ))}
        </ul>
      )}
      {count < COMPARED ? (
        <Adder jobs={jobs} past={past} onJob={(job) => set([...jobs, job], past)} onPast={(id) => set(jobs, [...past, id])} />
      ) : (
        <p class="quiet">{COMPARED} can be compared at once.</p>
      )}
      {lines.length > 0 ? (
        <Charts lines={lines} isCompared {...setting} />
      ) : (
        <p class="nothing">
          {count > 0 ? "None of them has metrics that can be read: they are there as long as the first pod is, or in the history." : "Add the TrainJobs to compare."}
        </p>
      )}
    </main>
  );
}

export function linesOf({ curves }: Pick<Side, "curves">, job: string, tone: number): Line[] {
  return Array.from(curves, ([metric, points]) => ({ id: `${job} ${metric}`, label: job, points, tone }));
}

function Compared({ job, side, tone, onRemove }: { job: string; side: Side; tone: number; onRemove(): void }) {
  const [namespace = "", name = ""] = job.split("/");
  return (
    <li class={`tone-${tone}`}>
      <span class="swatch train" aria-hidden="true" />
      <a href={href(jobPath(namespace, name))} onClick={onLink}>
        {name}
      </a>{" "}
      <span class="namespace">{namespace}</span>
      {side.row && !side.isGone && <State of={side.row} />}
      {side.row && <Progress of={side.row} />}
      {side.isGone && <span class="quiet">{side.row ? "was deleted" : "does not exist"}</span>}
      {side.trouble && <span class="quiet">{side.trouble}</span>}
      <button type="button" class="plain" aria-label={`Remove ${job}`} onClick={onRemove}>
        remove
      </button>
    </li>
  );
}

/** TrainJobs that can be added, those with metrics first. */
export function candidates(rows: Iterable<Row>, jobs: readonly string[]): string[] {
  const others = [...rows].filter((row) => !jobs.includes(id(row)));
  const hasMetric = (row: Row) => Number(Boolean(row.metric));
  return others.sort((a, b) => hasMetric(b) - hasMetric(a) || (id(a) < id(b) ? -1 : 1)).map(id);
}

/** A training of the history in a legend: its name, and when it ended. */
function labelOf(id: string, side: PastSide | undefined): string {
  const name = id.split("/").slice(0, 2).map(decodeURIComponent).join("/");
  const end = side?.past ? minute(endOf(side.past)) : "";
  return end ? `${name}, ended ${end}` : name;
}

function ComparedPast({ id, side: { past, trouble }, tone, onRemove }: { id: string; side: PastSide; tone: number; onRemove(): void }) {
  const [namespace = "", name = "", uid = ""] = id.split("/").map(decodeURIComponent);
  return (
    <li class={`tone-${tone}`}>
      <span class="swatch train" aria-hidden="true" />
      <a href={href(pastPath({ namespace, name, uid }))} onClick={onLink}>
        {name}
      </a>{" "}
      <span class="namespace">{namespace}</span>
      {past && <Ending of={past} />}
      {past && (
        <span class="quiet">
          ended {moment(endOf(past))}
        </span>
      )}
      {trouble && <span class="quiet">{trouble}</span>}
      <button type="button" class="plain" aria-label={`Remove ${labelOf(id, undefined)} of the history`} onClick={onRemove}>
        remove
      </button>
    </li>
  );
}

const OFFERED = 200;

/** Trainings of the history by the text that names them, without those that are compared. */
export function pastCandidates(trainings: readonly Past[], past: readonly string[]): Map<string, string> {
  const others = trainings.filter((each) => !past.includes(pastId(each)));
  return new Map(others.map((each) => [`${id(each)}, ended ${moment(endOf(each))}, ${each.uid.slice(0, 8)}`, pastId(each)]));
}

interface AdderProperties {
  jobs: readonly string[];
  past: readonly string[];
  onJob(job: string): void;
  onPast(id: string): void;
}

function Adder({ jobs, past, onJob, onPast }: AdderProperties) {
  const { rows } = useListing();
  const kept = useAnswer<PastList>("/api/history", useContext(HasHistory) ? "" : null);
  const [text, setText] = useState("");
  const live = useMemo(() => candidates(rows.values(), jobs), [rows, jobs.join(" ")]);
  const gone = useMemo(() => pastCandidates(kept.value?.trainings ?? [], past), [kept.value, past.join(" ")]);
  const all = [...live, ...gone.keys()];
  const offered = all.filter((each) => each.includes(text.trim())).slice(0, OFFERED);
  const add = (wanted: string) => {
    if (!all.includes(wanted)) return;
    setText("");
    const found = gone.get(wanted);
    if (found) onPast(found);
    else onJob(wanted);
  };
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        add(all.includes(text.trim()) ? text.trim() : (offered[0] ?? ""));
      }}
    >
      <label>
        <span>Add a TrainJob</span>
        <input
          type="search"
          list="candidates"
          value={text}
          placeholder="namespace/name"
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <datalist id="candidates">
        {offered.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <button type="submit" disabled={offered.length === 0}>
        Add
      </button>
    </form>
  );
}
