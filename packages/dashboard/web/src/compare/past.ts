// Trainings of the history that are compared; they do not change any more, so each is asked for once.

import { useEffect, useState } from "preact/hooks";
import { request } from "../api";
import { inTurn } from "../in_turn";
import { extend } from "../job/store";
import type { Job, MetricNews, Past, Points, Recipe } from "../model";

export interface PastSide {
  /** Null before it has come. */
  past: Past | null;
  /** Null where the TrainJob was not kept. */
  recipe: Recipe | null;
  curves: ReadonlyMap<string, Points>;
  /** Why there is none, or why it has no metrics. */
  trouble: string;
}

export const UNKNOWN: PastSide = { past: null, recipe: null, curves: new Map(), trouble: "" };

/** Requests at once: the server answers few of one party, and other pages ask, too. */
const AT_ONCE = 4;

/** What is known of each, by `NAMESPACE/NAME/UID`. */
type PastSides = ReadonlyMap<string, PastSide>;

export function known(sides: PastSides, id: string, changes: Partial<PastSide>): PastSides {
  return new Map(sides).set(id, { ...(sides.get(id) ?? UNKNOWN), ...changes });
}

const ask = inTurn(AT_ONCE);

export function usePastSides(ids: readonly string[]): PastSides {
  const [sides, setSides] = useState<PastSides>(new Map());
  useEffect(() => {
    for (const id of ids) {
      if (sides.has(id)) continue;
      const learn = (changes: Partial<PastSide>) => setSides((before) => known(before, id, changes));
      const fail = (error: Error) => learn({ trouble: error.message });
      learn({});
      void ask(() =>
        request<{ training: Past; job: Job | null }>("GET", `/api/history/${id}`).then(
          ({ training, job }) => learn({ past: training, recipe: job?.recipe ?? null }),
          fail,
        ),
      );
      void ask(() => request<MetricNews>("GET", `/api/history/${id}/metrics`).then((news) => learn({ curves: extend(new Map(), news) }), fail));
    }
  }, [ids.join(" ")]);
  return sides;
}
