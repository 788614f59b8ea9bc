// What the page of a TrainJob shows, kept by a stream.

import { trainJobPath } from "../api";
import type { Job, KubeEvent, MetricNews, Node, Points, StreamProblem } from "../model";
import type { ServerEvent } from "../sse";
import { useStream } from "../stream";

export interface Curves {
  curves: ReadonlyMap<string, Points>;
  /** What takes their place once all of it has come; null: nothing does. */
  coming: ReadonlyMap<string, Points> | null;
}

export interface Page extends Curves {
  job: Job | null;
  nodes: Node[];
  events: KubeEvent[];
  /** What the server could not get from the cluster. */
  problems: string[];
  isGone: boolean;
  /** Why the stream is broken, or the server cannot follow the TrainJob; "" while all is well. */
  problem: string;
}

export const EMPTY: Page = { job: null, nodes: [], events: [], problems: [], curves: new Map(), coming: null, isGone: false, problem: "" };

function curveId(points: { kind: string; name: string }): string {
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

/** Take samples; those before stay in view, and what the user has zoomed to, until all that take their place have come. */
export function withNews({ curves, coming }: Curves, news: MetricNews): Curves {
  const next = extend(coming ?? curves, news);
  const isComing = news.hasMore && (news.isReset || coming !== null) && curves.size > 0;
  return isComing ? { curves, coming: next } : { curves: next, coming: null };
}

export function received(page: Page, { name, data }: ServerEvent): Page {
  if (name === "metrics") return { ...page, ...withNews(page, data as MetricNews) };
  if (name === "problem") return { ...page, problem: (data as StreamProblem).text };
  if (name === "gone") return { ...page, isGone: true, problem: "" };
  return { ...page, [name]: data, isGone: false };
}

export function usePage(namespace: string, name: string): Page {
  return useStream(trainJobPath({ namespace, name }), EMPTY, received, ({ isGone }) => isGone);
}
