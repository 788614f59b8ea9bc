// Which TrainJobs the list shows, and in which order; all of it is in the address.

import type { Listed, Row } from "../model";
import { searched } from "../search";

export type SortKey = "name" | "state" | "progress" | "remaining" | "runtime" | "nodes" | "gpus" | "owner" | "created";

/** States that people look for together. */
export const PHASES = ["running", "waiting", "failed", "done"] as const;
export type Phase = (typeof PHASES)[number];

export interface Filters {
  text: string;
  namespace: string;
  /** A phase, or a state alone, which only addresses name; "" for all. */
  state: string;
  runtime: string;
  /** What rows are grouped by: a column, or `label:KEY`; "" for nothing. */
  groupBy: string;
  sort: SortKey;
  isReversed: boolean;
}

const KEYS: readonly SortKey[] = ["name", "state", "progress", "remaining", "runtime", "nodes", "gpus", "owner", "created"];

const PHASE_OF: Record<string, Phase> = {
  Running: "running",
  Stopping: "running",
  Restarting: "running",
  Stalled: "running",
  Failed: "failed",
  Complete: "done",
};

/** The phase of a state; what does not run yet, or not any more for now, waits. */
export function phaseOf(state: string): Phase {
  return PHASE_OF[state] ?? "waiting";
}

/** How many rows are in each phase. */
export function phases(rows: Iterable<Row>): Record<Phase, number> {
  const counts = { running: 0, waiting: 0, failed: 0, done: 0 };
  for (const row of rows) counts[phaseOf(row.state)]++;
  return counts;
}

/** Whether a filter has a phase, not a state alone: those are capitalised. */
export function isPhase(state: string): state is Phase {
  return PHASES.includes(state as Phase);
}

function isIn(state: string, wanted: string): boolean {
  return !wanted || (isPhase(wanted) ? phaseOf(state) : state) === wanted;
}

export function read(query: URLSearchParams): Filters {
  const sort = query.get("sort") ?? "";
  const key = sort.replace(/^-/, "") as SortKey;
  return {
    text: query.get("q") ?? "",
    namespace: query.get("namespace") ?? "",
    state: query.get("state") ?? "",
    runtime: query.get("runtime") ?? "",
    groupBy: query.get("group") ?? "",
    sort: KEYS.includes(key) ? key : "created",
    isReversed: KEYS.includes(key) ? sort.startsWith("-") : true,
  };
}

export function write(filters: Filters): string {
  const query = new URLSearchParams();
  if (filters.text) query.set("q", filters.text);
  if (filters.namespace) query.set("namespace", filters.namespace);
  if (filters.state) query.set("state", filters.state);
  if (filters.runtime) query.set("runtime", filters.runtime);
  if (filters.groupBy) query.set("group", filters.groupBy);
  const sort = (filters.isReversed ? "-" : "") + filters.sort;
  if (sort !== "-created") query.set("sort", sort);
  const text = query.toString();
  return text ? `/?${text}` : "/";
}

export function select(rows: Iterable<Listed>, filters: Filters): Listed[] {
  const has = searched(filters.text);
  const chosen = [...rows].filter(
    (row) =>
      (!filters.namespace || row.namespace === filters.namespace) &&
      isIn(row.state, filters.state) &&
      (!filters.runtime || row.runtime === filters.runtime) &&
      has(`${row.namespace}/${row.name} ${row.runtime} ${row.owner} ${row.message}`),
  );
  const sign = filters.isReversed ? -1 : 1;
  return chosen.sort((a, b) => sign * compare(a[filters.sort], b[filters.sort]) || compare(id(a), id(b)));
}

/** What is not known comes first, so that it is last in the usual, descending order. */
function compare(a: string | number | null, b: string | number | null): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return a < b ? -1 : 1;
}

export function id(row: { namespace: string; name: string }): string {
  return `${row.namespace}/${row.name}`;
}

export function values(rows: Iterable<Row>, key: "namespace" | "runtime", present: string): string[] {
  const found = new Set<string>();
  for (const row of rows) if (row[key]) found.add(row[key]);
  if (present) found.add(present);
  return [...found].sort();
}
