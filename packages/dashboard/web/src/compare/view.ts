// How a comparison is shown; all of it is in the address, beside the options of the charts.

import { STATISTICS, type Statistic } from "./results";

/** What is kept of an axis: a part of its numbers, or some of its values. */
export type Kept = { key: string; low: number; high: number } | { key: string; values: readonly string[] };

export interface CompareView {
  /** A key of a field or metric, or one of these; "" leaves the order of the address. */
  sort: string;
  isReversed: boolean;
  statistic: Statistic;
  /** Only the trainings that fit all of them are shown. */
  kept: readonly Kept[];
  /** Trainings that charts leave out. */
  off: readonly string[];
  /** Whether metrics are shown that nobody looks at first, too. */
  hasAllMetrics: boolean;
}

const MOST_KEPT = 20;

export function readView(query: URLSearchParams): CompareView {
  const sort = query.get("sort") ?? "";
  const statistic = STATISTICS.find((each) => each === query.get("result")) ?? "last";
  return {
    sort: sort.replace(/^-/, ""),
    isReversed: sort.startsWith("-"),
    statistic,
    kept: query.getAll("keep").slice(0, MOST_KEPT).flatMap(keptOf),
    off: query.getAll("off"),
    hasAllMetrics: query.get("metrics") === "all",
  };
}

/** The query with this view, and with all else that is in it. */
export function writeView(query: URLSearchParams, { sort, isReversed, statistic, kept, off, hasAllMetrics }: CompareView): URLSearchParams {
  const next = new URLSearchParams(query);
  const set = (name: string, value: string) => (value ? next.set(name, value) : next.delete(name));
  set("sort", sort && `${isReversed ? "-" : ""}${sort}`);
  set("result", statistic === "last" ? "" : statistic);
  set("metrics", hasAllMetrics ? "all" : "");
  next.delete("keep");
  for (const each of kept) next.append("keep", JSON.stringify("values" in each ? [each.key, each.values] : [each.key, each.low, each.high]));
  next.delete("off");
  for (const each of off) next.append("off", each);
  return next;
}

function keptOf(text: string): Kept[] {
  let parts: unknown;
  try {
    parts = JSON.parse(text);
  } catch {
    return [];
  }
  if (!Array.isArray(parts) || typeof parts[0] !== "string") return [];
  const [key, low, high] = parts as [string, unknown, unknown];
  if (Array.isArray(low) && low.every((each) => typeof each === "string")) return [{ key, values: low }];
  return typeof low === "number" && typeof high === "number" ? [{ key, low, high }] : [];
}
