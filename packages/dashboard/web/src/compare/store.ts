// The metrics of several TrainJobs, kept by one stream.

import { type Curves, withNews } from "../job/store";
import type { MetricNews, Row, StreamProblem } from "../model";
import type { ServerEvent } from "../sse";
import { useStream } from "../stream";

export const COMPARED = 8;

export interface Side extends Curves {
  row: Row | null;
  /** Why there are no metrics. */
  trouble: string;
  isGone: boolean;
}

export interface Comparison {
  sides: readonly Side[];
  problem: string;
}

export const NOTHING: Side = { row: null, curves: new Map(), coming: null, trouble: "", isGone: false };

export function received(comparison: Comparison, { name, data }: ServerEvent): Comparison {
  if (name === "problem") return { ...comparison, problem: (data as StreamProblem).text };
  const { source } = data as { source: number };
  const sides = comparison.sides.map((side, index) => (index === source ? changed(side, name, data) : side));
  return { ...comparison, sides };
}

function changed(side: Side, name: string, data: unknown): Side {
  if (name === "job") return { ...side, row: data as Row, isGone: false };
  if (name === "metrics") return { ...side, ...withNews(side, data as MetricNews) };
  if (name === "trouble") return { ...side, trouble: (data as StreamProblem).text };
  return name === "gone" ? { ...side, isGone: true } : side;
}

/** Trainings of the history as `NAMESPACE/NAME/UID`, without repetitions, and not more than can be compared with the TrainJobs. */
export function comparedPast(query: URLSearchParams): string[] {
  const wanted = query.getAll("past").filter((past) => /^[^/]+\/[^/]+\/[^/]+$/.test(past));
  return [...new Set(wanted)].slice(0, COMPARED - compared(query).length);
}

/** TrainJobs as `NAMESPACE/NAME`, without repetitions, and not more than can be compared. */
export function compared(query: URLSearchParams): string[] {
  const wanted = query.getAll("job").filter((job) => /^[^/]+\/[^/]+$/.test(job));
  return [...new Set(wanted)].slice(0, COMPARED);
}

export function useComparison(jobs: readonly string[]): Comparison {
  const none: Comparison = { sides: jobs.map(() => NOTHING), problem: "" };
  const path = jobs.length > 0 ? `/api/metrics?${new URLSearchParams(jobs.map((job) => ["job", job]))}` : null;
  const shown = useStream(path, none, received, ({ sides }) => sides.every(({ isGone }) => isGone));
  return shown.sides.length === jobs.length ? shown : none;
}
