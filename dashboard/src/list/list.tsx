// The list of TrainJobs.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { useNow } from "../clock";
import { age } from "../format";
import type { Row } from "../model";
import { Problem, Progress, Remaining, State } from "../parts";
import { go, href, jobPath, onLink } from "../route";
import { type Filters, type SortKey, id, read, select, values, write } from "./filters";
import { useListing } from "./store";
import { useRowHeight, useWindow } from "./virtual";

const COLUMNS: [SortKey, string][] = [
  ["name", "TrainJob"],
  ["state", "State"],
  ["progress", "Progress"],
  ["remaining", "Time left"],
  ["runtime", "Runtime"],
  ["nodes", "Nodes"],
  ["created", "Age"],
];

export function List({ query }: { query: URLSearchParams }) {
  const { rows, isLoaded, problem } = useListing();
  const filters = read(query);
  const chosen = useMemo(() => select(rows.values(), filters), [rows, query.toString()]);
  useEffect(() => {
    document.title = "TrainJobs";
  }, []);
  const set = (changes: Partial<Filters>) => go(write({ ...filters, ...changes }), "replace");
  return (
    <main>
      <h1 class="unseen" tabIndex={-1}>TrainJobs</h1>
      {problem && <Problem>{problem}</Problem>}
      <FilterBar rows={rows} filters={filters} set={set} />
      <p class="count" role="status">
        {isLoaded ? `${chosen.length} of ${rows.size} TrainJobs` : problem ? "" : "Loading ..."}
      </p>
      {isLoaded && chosen.length === 0 ? (
        <Nothing isFiltered={rows.size > 0} />
      ) : (
        <Table rows={chosen} filters={filters} set={set} />
      )}
    </main>
  );
}

interface Setting {
  filters: Filters;
  set(changes: Partial<Filters>): void;
}

function FilterBar({ rows, filters, set }: Setting & { rows: ReadonlyMap<string, Row> }) {
  const search = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) return;
      event.preventDefault();
      search.current?.focus();
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, []);
  return (
    <search class="filters">
      <label>
        <span>Search (press /)</span>
        <input
          ref={search}
          type="search"
          value={filters.text}
          onInput={(event) => set({ text: event.currentTarget.value })}
          onKeyDown={(event) => event.key === "Escape" && (set({ text: "" }), event.currentTarget.blur())}
        />
      </label>
      {(["namespace", "state", "runtime"] as const).map((key) => (
        <label key={key}>
          <span>{key[0]!.toUpperCase() + key.slice(1)}</span>
          <select value={filters[key]} onChange={(event) => set({ [key]: event.currentTarget.value })}>
            <option value="">all</option>
            {values(rows.values(), key, filters[key]).map((value) => (
              <option key={value} value={value}>
                {value}
              </option>
            ))}
          </select>
        </label>
      ))}
    </search>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <p class="nothing">
        No TrainJob matches. <a href={href("/")} onClick={onLink}>Show all</a>
      </p>
    );
  return (
    <p class="nothing">
      There are no TrainJobs yet. Start one with <code>trainer run train.py</code>
    </p>
  );
}

const WIDE = 44;
const NARROW = 92;

function Table({ rows, filters, set }: Setting & { rows: Row[] }) {
  const body = useRef<HTMLDivElement>(null);
  const height = useRowHeight(WIDE, NARROW);
  const { first, last } = useWindow(body, height, rows.length);
  return (
    <div class="table" role="table" aria-label="TrainJobs" aria-rowcount={rows.length + 1}>
      <div role="rowgroup" class="head">
        <div role="row" class="row" aria-rowindex={1}>
          {COLUMNS.map(([key, title]) => (
            <Title key={key} of={key} title={title} filters={filters} set={set} />
          ))}
        </div>
      </div>
      <div
        role="rowgroup"
        class="body"
        ref={body}
        style={{ height: `${rows.length * height}px` }}
        onKeyDown={(event) => move(event, height)}
      >
        {rows.slice(first, last).map((row, index) => (
          <Line key={id(row)} row={row} index={first + index} height={height} />
        ))}
      </div>
    </div>
  );
}

function Title({ of, title, filters, set }: Setting & { of: SortKey; title: string }) {
  const isSorted = filters.sort === of;
  const order = isSorted ? (filters.isReversed ? "descending" : "ascending") : "none";
  return (
    <div role="columnheader" class={of} aria-sort={order}>
      <button type="button" onClick={() => set({ sort: of, isReversed: isSorted ? !filters.isReversed : of !== "name" })}>
        {title}
        <span aria-hidden="true">{isSorted ? (filters.isReversed ? " ↓" : " ↑") : ""}</span>
      </button>
    </div>
  );
}

function Line({ row, index, height }: { row: Row; index: number; height: number }) {
  const now = useNow();
  return (
    <div
      role="row"
      class="row"
      aria-rowindex={index + 2}
      data-index={index}
      style={{ height: `${height}px`, transform: `translateY(${index * height}px)` }}
    >
      <div role="cell" class="name">
        <a href={href(jobPath(row.namespace, row.name))} onClick={onLink}>
          {row.name}
        </a>{" "}
        <span class="namespace">{row.namespace}</span>
      </div>
      <div role="cell" class="state">
        <span title={row.message}>
          <State of={row} />
        </span>
        {row.message && <span class="unseen">{row.message}</span>}
      </div>
      <div role="cell" class="progress">
        <Progress of={row} />
      </div>
      <div role="cell" class="remaining">
        <Remaining of={row} />
      </div>
      <div role="cell" class="runtime">{row.runtime}</div>
      <div role="cell" class="nodes">{row.nodes ?? ""}</div>
      <div role="cell" class="created" title={row.created ?? ""}>
        {age(row.created, now)}
      </div>
    </div>
  );
}

/** Arrow keys go from TrainJob to TrainJob; the next one is always in the document. */
function move(event: KeyboardEvent, height: number): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  const row = (event.target as HTMLElement).closest<HTMLElement>("[data-index]");
  if (!step || !row) return;
  event.preventDefault();
  const next = row.parentElement?.querySelector<HTMLElement>(`[data-index="${Number(row.dataset.index) + step}"]`);
  if (!next) return;
  next.querySelector("a")?.focus({ preventScroll: true });
  const { top, bottom } = next.getBoundingClientRect();
  const header = 2 * WIDE;
  if (top < header) window.scrollBy(0, top - header);
  if (bottom > window.innerHeight) window.scrollBy(0, bottom - window.innerHeight + height);
}
