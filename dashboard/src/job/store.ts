// What the page of a TrainJob shows, kept by a stream.

import { useEffect, useRef, useState } from "preact/hooks";
import { follow, trainJobPath } from "../api";
import type { Job, KubeEvent, MetricNews, Node, Points, StreamProblem } from "../model";
import type { ServerEvent } from "../sse";

export interface Page {
  job: Job | null;
  nodes: Node[];
  events: KubeEvent[];
  /** What the server could not get from the cluster. */
  problems: string[];
  curves: ReadonlyMap<string, Points>;
  isGone: boolean;
  /** Why the stream is broken, or the server cannot follow the TrainJob; "" while all is well. */
  problem: string;
}

export const EMPTY: Page = { job: null, nodes: [], events: [], problems: [], curves: new Map(), isGone: false, problem: "" };

export function curveId(points: { kind: string; name: string }): string {
  return `${points.kind}/${points.name}`;
}

/** Add samples to the curves; only changed curves are new objects. */
export function extend(curves: ReadonlyMap<string, Points>, news: MetricNews): Map<string, Points> {
  const next = new Map(news.isReset ? [] : curves);
  for (const added of news.series) {
    const before = next.get(curveId(added));
    next.set(
      curveId(added),
      before
        ? {
            ...before,
            times: before.times.concat(added.times),
            steps: before.steps.concat(added.steps),
            values: before.values.concat(added.values),
          }
        : added,
    );
  }
  return next;
}

export function received(page: Page, { name, data }: ServerEvent): Page {
  if (name === "metrics") return { ...page, curves: extend(page.curves, data as MetricNews) };
  if (name === "problem") return { ...page, problem: (data as StreamProblem).text };
  if (name === "gone") return { ...page, isGone: true, problem: "" };
  return { ...page, [name]: data, isGone: false };
}

export function usePage(namespace: string, name: string): Page {
  const [page, setPage] = useState<Page>(EMPTY);
  const latest = useRef<Page>(EMPTY);
  useEffect(() => {
    const show = (changed: Page) => {
      latest.current = changed;
      setPage(changed);
    };
    show(EMPTY);
    return follow(trainJobPath({ namespace, name }), {
      event: (event) => show(received(latest.current, event)),
      state: (problem) => show({ ...latest.current, problem }),
      isOver: () => latest.current.isGone,
    });
  }, [namespace, name]);
  return page;
}
