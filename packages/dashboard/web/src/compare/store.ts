// The TrainJobs of the cluster that are compared, kept by one stream.

import { useRef } from "preact/hooks";
import { type Curves, withNews } from "../job/store";
import type { MetricNews, Recipe, Row, StreamProblem } from "../model";
import type { ServerEvent } from "../sse";
import { decoded } from "../route";
import { useStream } from "../stream";

/** As many as the server takes at once. */
export const COMPARED = 50;

export interface Side extends Curves {
  row: (Row & { started: string | null }) | null;
  recipe: Recipe | null;
  /** Why there are no metrics. */
  trouble: string;
  isGone: boolean;
}

export interface Comparison {
  sides: readonly Side[];
  problem: string;
}

export const NOTHING: Side = { row: null, recipe: null, curves: new Map(), coming: null, trouble: "", isGone: false };

export function received(comparison: Comparison, { name, data }: ServerEvent): Comparison {
  if (name === "problem") return { ...comparison, problem: (data as StreamProblem).text };
  const { source } = data as { source: number };
  const sides = comparison.sides.map((side, index) => (index === source ? changed(side, name, data) : side));
  return { ...comparison, sides };
}

function changed(side: Side, name: string, data: unknown): Side {
  if (name === "job") return { ...side, row: data as Side["row"], isGone: false };
  if (name === "recipe") return { ...side, recipe: (data as { recipe: Recipe }).recipe };
  if (name === "metrics") return { ...side, ...withNews(side, data as MetricNews) };
  if (name === "trouble") return { ...side, trouble: (data as StreamProblem).text };
  return name === "gone" ? { ...side, isGone: true } : side;
}

/** Trainings of the history as `NAMESPACE/NAME/UID`, without repetitions, and not more than can be compared with the TrainJobs. */
export function comparedPast(query: URLSearchParams): string[] {
  const wanted = query.getAll("past").filter(isPastId);
  return [...new Set(wanted)].slice(0, COMPARED - compared(query).length);
}

/** Whether it names a training of the history, as `pastId` does: an address may say anything. */
function isPastId(text: string): boolean {
  return /^[\w%.-]+\/[\w%.-]+\/[\w%.-]+$/.test(text) && text.split("/").every((part) => decoded(part) !== "" && !/^\.+$/.test(part));
}

/** TrainJobs as `NAMESPACE/NAME`, without repetitions, and not more than can be compared. */
export function compared(query: URLSearchParams): string[] {
  const wanted = query.getAll("job").filter((job) => /^[^/]+\/[^/]+$/.test(job));
  return [...new Set(wanted)].slice(0, COMPARED);
}

/** How many trainings an address names beyond those that can be compared. */
export function beyond(query: URLSearchParams): number {
  return new Set([...query.getAll("job"), ...query.getAll("past")]).size - compared(query).length - comparedPast(query).length;
}

export function useComparison(jobs: readonly string[]): Comparison {
  // What is known stays in view when another one is added, until the new stream has sent it again.
  const known = useRef<ReadonlyMap<string, Side>>(new Map());
  const none: Comparison = { sides: jobs.map((job) => known.current.get(job) ?? NOTHING), problem: "" };
  const path = jobs.length > 0 ? `/api/metrics?${new URLSearchParams(jobs.map((job) => ["job", job]))}` : null;
  const shown = useStream(path, none, received, ({ sides }) => sides.every(({ isGone }) => isGone));
  if (shown.sides.length !== jobs.length) return none;
  known.current = new Map(jobs.map((job, index) => [job, shown.sides[index]!]));
  return shown;
}
