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
  { key: "name", title: "TrainJob", width: "minmax(150px, 2.2fr)" },
  { key: "state", title: "State", width: "minmax(130px, 2.6fr)" },
  { key: "progress", title: "Progress", width: "minmax(116px, 0.8fr)" },
  { key: "remaining", title: "Time left", width: "70px" },
  { key: "metric", title: "Metric", width: "minmax(120px, 1.1fr)" },
  { key: "runtime", title: "Runtime", width: "minmax(118px, 0.9fr)" },
  { key: "nodes", title: "Nodes", width: "48px" },
  { key: "gpus", title: "GPUs", width: "48px" },
  { key: "owner", title: "Owner", width: "minmax(80px, 0.7fr)" },
  { key: "created", title: "Age", width: "60px" },
];
/** How much room there is: on a screen of 1,180 pixels and less, and of 940 and less. */
export type Room = "wide" | "medium" | "small";
const LEFT_OUT: Record<Room, readonly ColumnKey[]> = { wide: [], medium: ["owner", "nodes", "runtime"], small: ["owner", "nodes", "runtime", "gpus", "remaining"] };
const ALWAYS = new Set<ColumnKey>(["name", "state", "created"]);

function hasValue(row: Listed, key: ColumnKey): boolean {
  const value = row[key];
  return value !== null && value !== undefined && value !== "";
}

/** The columns that some row fills and that there is room for, and the one that the list is sorted by. */
export function columns(rows: readonly Listed[], sort: SortKey, room: Room = "wide"): Column[] {
  const isShown = (key: ColumnKey) => !LEFT_OUT[room].includes(key) && rows.some((row) => hasValue(row, key));
  return COLUMNS.filter(({ key }) => ALWAYS.has(key) || key === sort || isShown(key));
}

const EXPLAINED = new Set(["Pending", "Blocked", "Failed", "Stalled", "Stopping", "Restarting"]);

/** Why a TrainJob is as it is, where that is no matter of course. */
export function reasonOf({ state, message, isDeleted }: Pick<Listed, "state" | "message" | "isDeleted">): string {
  return EXPLAINED.has(state) && !isDeleted ? message : "";
}
