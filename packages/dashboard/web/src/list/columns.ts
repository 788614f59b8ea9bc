// The columns of the list: those that nobody has a value for are not shown.

import type { Listed } from "../model";
import type { SortKey } from "./filters";

export type ColumnKey = SortKey | "metric";

export interface Column {
  key: ColumnKey;
  title: string;
  /** As CSS has it for a track of a grid. */
  width: string;
}

const COLUMNS: readonly Column[] = [
  { key: "name", title: "TrainJob", width: "minmax(170px, 1.8fr)" },
  { key: "state", title: "State", width: "minmax(150px, 2.8fr)" },
  { key: "progress", title: "Progress", width: "minmax(110px, 0.9fr)" },
  { key: "remaining", title: "Time left", width: "76px" },
  { key: "metric", title: "Metric", width: "minmax(178px, 1fr)" },
  { key: "runtime", title: "Runtime", width: "minmax(90px, 0.9fr)" },
  { key: "nodes", title: "Nodes", width: "58px" },
  { key: "gpus", title: "GPUs", width: "54px" },
  { key: "owner", title: "Owner", width: "minmax(80px, 1fr)" },
  { key: "created", title: "Age", width: "60px" },
];
const ALWAYS = new Set<ColumnKey>(["name", "state", "created"]);

function hasValue(row: Listed, key: ColumnKey): boolean {
  const value = row[key];
  return value !== null && value !== undefined && value !== "";
}

/** The columns that some row fills, and the one that the list is sorted by. */
export function columns(rows: readonly Listed[], sort: SortKey): Column[] {
  return COLUMNS.filter(({ key }) => ALWAYS.has(key) || key === sort || rows.some((row) => hasValue(row, key)));
}

const EXPLAINED = new Set(["Pending", "Blocked", "Failed", "Stalled", "Restarting"]);

/** Why a TrainJob is as it is, where that is no matter of course. */
export function reasonOf({ state, message, isDeleted }: Pick<Listed, "state" | "message" | "isDeleted">): string {
  return EXPLAINED.has(state) && !isDeleted ? message : "";
}
