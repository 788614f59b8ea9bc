// Trainings of the history that are compared; they do not change any more, so each is asked for once.

import { useEffect, useState } from "preact/hooks";
import { request } from "../api";
import { extend } from "../job/store";
import type { MetricNews, Past, Points } from "../model";

export interface PastSide {
  /** Null before it has come. */
  past: Past | null;
  curves: ReadonlyMap<string, Points>;
  /** Why there is none, or why it has no metrics. */
  trouble: string;
}

export const UNKNOWN: PastSide = { past: null, curves: new Map(), trouble: "" };

/** What is known of each, by `NAMESPACE/NAME/UID`. */
type PastSides = ReadonlyMap<string, PastSide>;

export function known(sides: PastSides, id: string, changes: Partial<PastSide>): PastSides {
  return new Map(sides).set(id, { ...(sides.get(id) ?? UNKNOWN), ...changes });
}

export function usePastSides(ids: readonly string[]): PastSides {
  const [sides, setSides] = useState<PastSides>(new Map());
  useEffect(() => {
    for (const id of ids) {
      if (sides.has(id)) continue;
      const learn = (changes: Partial<PastSide>) => setSides((before) => known(before, id, changes));
      const fail = (error: Error) => learn({ trouble: error.message });
      learn({});
      request<{ training: Past }>("GET", `/api/history/${id}`).then(({ training }) => learn({ past: training }), fail);
      request<MetricNews>("GET", `/api/history/${id}/metrics`).then((news) => learn({ curves: extend(new Map(), news) }), fail);
    }
  }, [ids.join(" ")]);
  return sides;
}
