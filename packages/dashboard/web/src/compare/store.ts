// The metrics of several TrainJobs, kept by one stream.

import { useEffect, useRef, useState } from "preact/hooks";
import { follow } from "../api";
import { type Curves, withNews } from "../job/store";
import type { MetricNews, Row, StreamProblem } from "../model";
import type { ServerEvent } from "../sse";

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
  const none = (): Comparison => ({ sides: jobs.map(() => NOTHING), problem: "" });
  const [shown, setShown] = useState(none);
  const latest = useRef(shown);
  const key = jobs.join(" ");
  useEffect(() => {
    const show = (next: Comparison) => {
      latest.current = next;
      setShown(next);
    };
    show(none());
    if (jobs.length === 0) return;
    return follow(`/api/metrics?${new URLSearchParams(jobs.map((job) => ["job", job]))}`, {
      event: (event) => show(received(latest.current, event)),
      state: (problem) => show({ ...latest.current, problem }),
      isOver: () => latest.current.sides.every(({ isGone }) => isGone),
    });
  }, [key]);
  return shown.sides.length === jobs.length ? shown : none();
}
