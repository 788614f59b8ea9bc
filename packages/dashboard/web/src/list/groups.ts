// Rows in groups: by what made them, such as a sweep, by a column, or by a label.

import { short } from "../format";
import type { Listed, Row } from "../model";
import { PHASES, phases } from "./filters";

export interface Group {
  /** The value that its rows have in common; "" where they have none. */
  value: string;
  rows: Listed[];
}

export type Item = { group: Group; row?: never } | { row: Listed; group?: never };

const COLUMNS: Record<string, string> = { owner: "Sweep or owner", runtime: "Runtime", namespace: "Namespace" };
const LABEL = "label:";
/** Most labels that are offered: everybody names their own. */
const OFFERED = 50;

/** What rows can be grouped by, with its title: columns, and the labels that most have. */
export function choices(rows: Iterable<Row>, present: string): Map<string, string> {
  const counts = new Map<string, number>();
  for (const row of rows) for (const label of Object.keys(row.labels ?? {})) counts.set(label, (counts.get(label) ?? 0) + 1);
  const byCount = [...counts].sort(([a, many], [b, more]) => more - many || (a < b ? -1 : 1));
  const labels = new Set(byCount.slice(0, OFFERED).map(([label]) => label));
  if (present.startsWith(LABEL)) labels.add(present.slice(LABEL.length));
  return new Map([...Object.entries(COLUMNS), ...[...labels].sort().map((label): [string, string] => [LABEL + label, `Label ${label}`])]);
}

function valueOf(row: Listed, groupBy: string): string {
  if (groupBy.startsWith(LABEL)) {
    const label = groupBy.slice(LABEL.length);
    return row.labels && Object.hasOwn(row.labels, label) ? row.labels[label]! : "";
  }
  return Object.hasOwn(COLUMNS, groupBy) ? String(row[groupBy as "owner" | "runtime" | "namespace"]) : "";
}

/** Groups in the order of their first rows; rows without a value are last. */
export function grouped(rows: readonly Listed[], groupBy: string): Group[] {
  const found = new Map<string, Group>();
  for (const row of rows) {
    const value = valueOf(row, groupBy);
    const group = found.get(value) ?? { value, rows: [] };
    group.rows.push(row);
    found.set(value, group);
  }
  const none = found.get("");
  found.delete("");
  return none ? [...found.values(), none] : [...found.values()];
}

/** The lines of a list: without groups its rows, else each group and, unless it is closed, its rows. */
export function items(rows: readonly Listed[], groupBy: string, closed: ReadonlySet<string>): Item[] {
  if (!groupBy) return rows.map((row) => ({ row }));
  return grouped(rows, groupBy).flatMap((group) => [{ group }, ...(closed.has(group.value) ? [] : group.rows.map((row) => ({ row })))]);
}

/** What a group is about in a few words: `3 running, 1 failed; loss 0.21 to 1.9`. */
export function summary({ rows }: Group): string {
  const counts = phases(rows);
  const states = PHASES.filter((phase) => counts[phase] > 0).map((phase) => `${counts[phase]} ${phase}`);
  const metrics = rows.flatMap(({ metric }) => metric ?? []);
  const values = metrics.map(({ trend }) => trend.at(-1) ?? NaN).filter(Number.isFinite);
  if (values.length === 0 || new Set(metrics.map(({ name, isEval }) => `${isEval} ${name}`)).size > 1) return states.join(", ");
  const [least, most] = [short(Math.min(...values)), short(Math.max(...values))];
  return `${states.join(", ")}; ${metrics[0]!.name} ${least === most ? least : `${least} to ${most}`}`;
}

