// The list of TrainJobs.

import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { HasHistory } from "../history/store";
import type { Listed } from "../model";
import { Problem, useTitle } from "../parts";
import { go, href, newPath, onLink } from "../route";
import { useRuntimes } from "../runtimes/store";
import { complete } from "../runtimes/usage";
import { Command } from "../shell/copy";
import { Icon } from "../shell/icons";
import { type Filters, PHASES, isPhase, phaseOf, phases, read, select, values, write } from "./filters";
import { choices } from "./groups";
import { Choice, SearchField } from "./keys";
import { SavedViews } from "./saved";
import { Selected } from "./selected";
import { useListing } from "./store";
import { type Setting, Table } from "./table";

export function List({ query }: { query: URLSearchParams }) {
  const { rows, isLoaded, more, problem } = useListing();
  const { runtimes } = useRuntimes();
  const filters = read(query);
  const all = useMemo(() => complete(rows.values(), runtimes), [rows, runtimes]);
  const chosen = useMemo(() => select(all, filters), [all, query.toString()]);
  const inAnyState = useMemo(() => select(all, { ...filters, state: "" }), [all, query.toString()]);
  const [selected, onSelect] = useState<ReadonlySet<string>>(new Set());
  useTitle("TrainJobs");
  const set = (changes: Partial<Filters>) => go(write({ ...filters, ...changes }), "replace");
  const isEmpty = isLoaded && rows.size === 0;
  return (
    <main class="wide list">
      <h1 class={isEmpty ? "unseen" : ""} tabIndex={-1}>TrainJobs</h1>
      {problem && <Problem>{problem}</Problem>}
      {isEmpty ? (
        <Nothing />
      ) : (
        <>
          <div class="above-list">
            <Phases rows={inAnyState} isCounted={isLoaded && more === 0} filters={filters} set={set} />
            <a class="button primary" href={href(newPath())} onClick={onLink}>
              New TrainJob
            </a>
          </div>
          <FilterBar rows={all} filters={filters} set={set} />
          <p class="count" role="status">
            {isLoaded && more === 0 ? `${chosen.length} of ${rows.size} TrainJobs` : problem ? "" : "Loading ..."}
          </p>
          <Selected rows={chosen.filter((row) => selected.has(row.uid))} onClear={() => onSelect(new Set())} />
          {isLoaded && more === 0 && chosen.length === 0 ? (
            <p class="nothing">
              No TrainJob matches. <a href={href("/")} onClick={onLink}>Show all</a>
            </p>
          ) : (
            isLoaded && <Table rows={chosen} filters={filters} set={set} selection={{ selected, onSelect }} />
          )}
        </>
      )}
    </main>
  );
}

const PHASE_TITLES = { "": "All", running: "Running", waiting: "Waiting", failed: "Failed", done: "Done" } as const;

function Phases({ rows, isCounted, filters, set }: Setting & { rows: readonly Listed[]; isCounted: boolean }) {
  const counts = { "": rows.length, ...phases(rows) };
  const alone = isPhase(filters.state) ? "" : filters.state;
  const chips = useRef<HTMLDivElement>(null);
  useEffect(() => {
    chips.current?.querySelector('[aria-pressed="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [filters.state, isCounted]);
  return (
    <div class="chips" role="group" aria-label="State" ref={chips}>
      {(["", ...PHASES] as const).map((phase) => (
        <button key={phase} type="button" class={`chip ${phase}`} aria-pressed={filters.state === phase} onClick={() => set({ state: phase })}>
          {PHASE_TITLES[phase]}
          <span class="number">{isCounted ? counts[phase] : ""}</span>
        </button>
      ))}
      {alone && (
        <button type="button" class={`chip ${phaseOf(alone)}`} aria-pressed title="Show all states" onClick={() => set({ state: "" })}>
          {alone}
          <span class="number">{isCounted ? rows.filter(({ state }) => state === alone).length : ""}</span>
          <Icon of="close" />
        </button>
      )}
    </div>
  );
}

/** The orders of a list without titles, on a narrow screen. */
const ORDERS: Record<string, string> = { "-created": "Newest first", created: "Oldest first", name: "By name", state: "By state", "-progress": "Most progress", remaining: "Soonest done" };

function orderOf(text: string): Pick<Filters, "sort" | "isReversed"> {
  const { sort, isReversed } = read(new URLSearchParams({ sort: text }));
  return { sort, isReversed };
}

function FilterBar({ rows, filters, set }: Setting & { rows: readonly Listed[] }) {
  const groups = useMemo(() => choices(rows, filters.groupBy), [rows, filters.groupBy]);
  const order = (filters.isReversed ? "-" : "") + filters.sort;
  return (
    <search class="filters">
      <SearchField text={filters.text} onText={(text) => set({ text })} />
      <Choice
        title="Runtime"
        values={values(rows, "runtime", filters.runtime)}
        chosen={filters.runtime}
        all="All runtimes"
        onChoice={(runtime) => set({ runtime })}
      />
      <label>
        <span>Group by</span>
        <select value={filters.groupBy} onChange={(event) => set({ groupBy: event.currentTarget.value })}>
          <option value="">Not grouped</option>
          {[...groups].map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <label class="only-narrow">
        <span>Sort by</span>
        <select value={order} onChange={(event) => set(orderOf(event.currentTarget.value))}>
          {Object.entries({ [order]: `By ${filters.sort}`, ...ORDERS }).map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <SavedViews path={write(filters)} />
    </search>
  );
}

function Nothing() {
  const hasHistory = useContext(HasHistory);
  return (
    <section class="empty" aria-label="No TrainJobs">
      <h2>Start the first training</h2>
      <p>There are no TrainJobs yet. A script becomes one with this command, and is here as soon as it is submitted:</p>
      <Command>trainer run train.py</Command>
      <p>
        Or write one here:{" "}
        <a href={href(newPath())} onClick={onLink}>
          New TrainJob
        </a>
      </p>
      {hasHistory && (
        <p class="quiet">
          Trainings that are gone are in the <a href={href("/history")} onClick={onLink}>history</a>.
        </p>
      )}
    </section>
  );
}
