// The list of sweeps.

import { useContext, useMemo } from "preact/hooks";
import { useNow } from "../clock";
import { age, duration, moment, short } from "../format";
import { HasHistory } from "../history/store";
import { SearchField } from "../list/keys";
import { type RowPlace, VirtualTable, useVirtualRows } from "../list/virtual_table";
import type { SweepRow } from "../model";
import { Problem, Tone, useTitle } from "../parts";
import { go, href, onLink, pastSweepPath, sweepPath } from "../route";
import { searched } from "../search";
import { Command } from "../shell/copy";
import { type PastSweepRow, useGoneSweeps } from "./past";
import { useSweeps } from "./store";
import "./sweeps.css";

const COLUMNS: [name: string, title: string][] = [
  ["name", "Sweep"],
  ["state", "State"],
  ["trials", "Trials"],
  ["best", "Best"],
  ["objective", "Objective"],
  ["algorithm", "Algorithm"],
  ["created", "Age"],
];
const WIDE = 54;
const NARROW = 96;

/** The sweeps of a namespace, "" for all, with all words of a search; the newest first. */
export function select(rows: Iterable<SweepRow>, text: string, namespace: string): SweepRow[] {
  const has = searched(text);
  return [...rows]
    .filter((row) => (!namespace || row.namespace === namespace) && has(`${row.namespace}/${row.name} ${row.state} ${row.metric} ${row.algorithm}`))
    .sort((a, b) => ((a.created ?? "") < (b.created ?? "") ? 1 : (a.created ?? "") > (b.created ?? "") ? -1 : a.name < b.name ? -1 : 1));
}

export function SweepList({ query, isShown }: { query: URLSearchParams; isShown: boolean }) {
  const { rows, isLoaded, problem } = useSweeps(isShown);
  const text = query.get("q") ?? "";
  const gone = useGoneSweeps(useContext(HasHistory), text, query.get("namespace") ?? "");
  const shown = useMemo(() => select(rows.values(), text, query.get("namespace") ?? ""), [rows, query.toString()]);
  useTitle("Sweeps");
  const search = (words: string) => {
    const next = new URLSearchParams(query);
    if (words) next.set("q", words);
    else next.delete("q");
    go(next.size > 0 ? `/sweeps?${next}` : "/sweeps", "replace");
  };
  if (!isShown)
    return (
      <main class="wide">
        <h1 tabIndex={-1}>Sweeps</h1>
        <p class="nothing">This cluster has no OptimizationJobs that you may see.</p>
        <GoneSweeps of={gone} />
      </main>
    );
  return (
    <main class="wide">
      <h1 tabIndex={-1}>Sweeps</h1>
      {problem && <Problem>{problem}</Problem>}
      {isLoaded && rows.size === 0 && gone.sweeps.length === 0 && !text ? (
        <Nothing />
      ) : (
        <>
          <search class="filters sweep-search">
            <SearchField text={text} onText={search} />
          </search>
          <p class="count" role="status">
            {isLoaded ? `${shown.length} of ${rows.size} ${rows.size === 1 ? "sweep" : "sweeps"}` : problem ? "" : "Loading ..."}
          </p>
          {isLoaded && (shown.length > 0 ? <Table rows={shown} /> : <p class="nothing">{rows.size > 0 ? "No sweep matches." : "There are none on the cluster."}</p>)}
        </>
      )}
      <GoneSweeps of={gone} />
    </main>
  );
}

function Nothing() {
  return (
    <section class="empty" aria-label="No sweeps">
      <h2>Search for the best parameters</h2>
      <p>There are no sweeps yet. A sweep trains a script with many parameters, and keeps the best:</p>
      <Command>{"trainer sweep train.py --param 'lr=log(1e-5,1e-1)' --trials 20 --minimize val_loss"}</Command>
    </section>
  );
}

/** The sweeps that are gone from the cluster, and that the history has. */
function GoneSweeps({ of: { sweeps, next, problem, more } }: { of: ReturnType<typeof useGoneSweeps> }) {
  const rows = useVirtualRows(sweeps, WIDE, NARROW);
  const head = COLUMNS.map(([key, title]) => (
    <div key={key} role="columnheader" class={key} aria-sort={key === "created" ? "descending" : undefined}>
      {key === "created" ? "Took" : title}
    </div>
  ));
  if (sweeps.length === 0) return problem ? <Problem>{problem}</Problem> : null;
  return (
    <section class="gone-sweeps" aria-labelledby="gone-title">
      <h2 id="gone-title">Gone from the cluster</h2>
      {problem && <Problem>{problem}</Problem>}
      <VirtualTable class="sweeps" label="Sweeps that are gone from the cluster" head={head} of={rows} isPartial={Boolean(next)}>
        {(row, place) => <Row key={row.uid} row={row} place={place} past={row} />}
      </VirtualTable>
      {next && (
        <button type="button" onClick={more}>
          Show more
        </button>
      )}
    </section>
  );
}

function Table({ rows }: { rows: readonly SweepRow[] }) {
  const head = COLUMNS.map(([key, title]) => (
    <div key={key} role="columnheader" class={key} aria-sort={key === "created" ? "ascending" : undefined}>
      {title}
    </div>
  ));
  return (
    <VirtualTable class="sweeps" label="Sweeps" head={head} of={useVirtualRows(rows, WIDE, NARROW)}>
      {(row, place) => <Row key={`${row.namespace}/${row.name}`} row={row} place={place} />}
    </VirtualTable>
  );
}

function Row({ row, place, past }: { row: SweepRow; place: RowPlace; past?: PastSweepRow }) {
  const now = useNow();
  return (
    <div class="row" {...place}>
      <div role="cell" class="name">
        <a href={href(past ? pastSweepPath(past) : sweepPath(row))} onClick={onLink} title={row.name}>
          {row.name}
        </a>{" "}
        <span class="namespace">{row.namespace}</span>
      </div>
      <div role="cell" class="state" title={row.message}>
        <Tone of={past && !past.ended ? "Stopped" : row.isDeleted ? "Deleting" : row.state} />
      </div>
      <div role="cell" class="trials">
        <TrialBar of={row} />
      </div>
      <div role="cell" class="best" title={row.best ? `${row.best.trainJob}: ${row.best.value}` : ""}>
        {row.best ? short(Number(row.best.value)) || row.best.value || "–" : ""}
      </div>
      <div role="cell" class="objective" title={row.metric}>
        {row.direction === "Maximize" ? "max" : "min"} {row.metric}
      </div>
      <div role="cell" class="algorithm">
        {row.algorithm} <span class="quiet">{`${row.parameterCount} ${row.parameterCount === 1 ? "parameter" : "parameters"}`}</span>
      </div>
      <div role="cell" class="created" title={past ? `Deleted ${moment(past.deleted)}` : (row.created ?? "")}>
        {past ? past.seconds !== null && duration(past.seconds) : age(row.created, now)}
      </div>
    </div>
  );
}

const PARTS = ["succeeded", "pruned", "failed", "running"] as const;

/** How many of its trials are in which state, of all that it will have. */
export function TrialBar({ of: { counts, numTrials, progress } }: { of: Pick<SweepRow, "counts" | "numTrials" | "progress"> }) {
  if (!counts) return <span class="quiet">{progress === null ? `${numTrials} trials` : `${progress} % of ${numTrials}`}</span>;
  const ended = counts.succeeded + counts.pruned + counts.failed;
  const text = PARTS.filter((each) => counts[each] > 0).map((each) => `${counts[each]} ${each}`).join(", ");
  return (
    <span class="trial-bar" title={text}>
      <span class="parts" role="img" aria-label={text || "none yet"}>
        {PARTS.map((each) => counts[each] > 0 && <span key={each} class={each} style={{ width: `${(100 * counts[each]) / Math.max(numTrials, 1)}%` }} />)}
      </span>
      <span>
        {ended} of {numTrials}
      </span>
    </span>
  );
}
