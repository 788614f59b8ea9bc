// What the page of a TrainJob shows, kept by a stream.

import { useEffect, useRef, useState } from "preact/hooks";
import { follow } from "../api";
import type { Job, KubeEvent, MetricNews, Node, Points } from "../model";

export interface Page {
  job: Job | null;
  nodes: Node[];
  events: KubeEvent[];
  /** What the server could not get from the cluster. */
  problems: string[];
  curves: ReadonlyMap<string, Points>;
  isGone: boolean;
  /** Why the stream is broken; "" while it is not. */
  problem: string;
}

const EMPTY: Page = { job: null, nodes: [], events: [], problems: [], curves: new Map(), isGone: false, problem: "" };

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

export function usePage(namespace: string, name: string): Page {
  const [page, setPage] = useState<Page>(EMPTY);
  const latest = useRef<Page>(EMPTY);
  useEffect(() => {
    const change = (changes: Partial<Page>) => {
      latest.current = { ...latest.current, ...changes };
      setPage(latest.current);
    };
    latest.current = EMPTY;
    change({});
    return follow(`/api/trainjobs/${namespace}/${name}`, {
      event({ name: event, data }) {
        if (event === "metrics") change({ curves: extend(latest.current.curves, data as MetricNews) });
        else if (event === "gone") change({ isGone: true });
        else change({ [event]: data, isGone: false });
      },
      state: (problem) => change({ problem }),
      isOver: () => latest.current.isGone,
    });
  }, [namespace, name]);
  return page;
}
