// The metrics of several TrainJobs in the same charts.

import { useEffect, useMemo, useState } from "preact/hooks";
import { Charts } from "../charts/charts";
import type { Line } from "../charts/curves";
import { useChartOptions } from "../charts/use_options";
import { id } from "../list/filters";
import { useListing } from "../list/store";
import type { Row } from "../model";
import { Problem, Progress, State } from "../parts";
import { go, href, jobPath, onLink } from "../route";
import { COMPARED, type Side, compared, useComparison } from "./store";

export function ComparePage({ query }: { query: URLSearchParams }) {
  const jobs = compared(query);
  const { sides, problem } = useComparison(jobs);
  const setting = useChartOptions();
  useEffect(() => {
    document.title = "Compare TrainJobs";
  }, []);
  const lines = useMemo(() => sides.flatMap((side, index) => linesOf(side, jobs[index] ?? "", index)), [sides]);
  const set = (next: string[]) => {
    const changed = new URLSearchParams(query);
    changed.delete("job");
    for (const job of next) changed.append("job", job);
    go(`/compare?${changed}`, "replace");
  };
  return (
    <main>
      <p class="back">
        <a href={href("/")} onClick={onLink}>
          ← All TrainJobs
        </a>
      </p>
      <h1 tabIndex={-1}>Compare TrainJobs</h1>
      {problem && <Problem>{problem}</Problem>}
      {jobs.length > 0 && (
        <ul class="compared">
          {jobs.map((job, index) => (
            <Compared key={job} job={job} side={sides[index]!} tone={index} onRemove={() => set(jobs.filter((each) => each !== job))} />
          ))}
        </ul>
      )}
      {jobs.length < COMPARED ? (
        <Adder jobs={jobs} onAdd={(job) => set([...jobs, job])} />
      ) : (
        <p class="quiet">{COMPARED} can be compared at once.</p>
      )}
      {lines.length > 0 ? (
        <Charts lines={lines} isCompared {...setting} />
      ) : (
        <p class="nothing">
          {jobs.length > 0 ? "None of them has metrics that can be read: they are there as long as the first pod is." : "Add the TrainJobs to compare."}
        </p>
      )}
    </main>
  );
}

export function linesOf({ curves }: Side, job: string, tone: number): Line[] {
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

const OFFERED = 200;

function Adder({ jobs, onAdd }: { jobs: readonly string[]; onAdd(job: string): void }) {
  const { rows } = useListing();
  const [text, setText] = useState("");
  const all = useMemo(() => candidates(rows.values(), jobs), [rows, jobs.join(" ")]);
  const offered = all.filter((job) => job.includes(text.trim())).slice(0, OFFERED);
  const add = (wanted: string) => {
    if (!all.includes(wanted)) return;
    setText("");
    onAdd(wanted);
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
        {offered.map((job) => (
          <option key={job} value={job} />
        ))}
      </datalist>
      <button type="submit" disabled={offered.length === 0}>
        Add
      </button>
    </form>
  );
}
