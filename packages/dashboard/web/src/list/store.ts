// The rows of the list, kept by a stream.

import { useEffect, useState } from "preact/hooks";
import { follow } from "../api";
import type { Row, StreamProblem } from "../model";
import type { ServerEvent } from "../sse";
import { id } from "./filters";

export interface Rows<T = Row> {
  /** The newest; `more` others follow. */
  all?: T[];
  more?: number;
  changed?: T[];
  gone?: [string, string][];
}

export interface Listing {
  rows: ReadonlyMap<string, Row>;
  /** Whether some are known; `more` others come at once. */
  isLoaded: boolean;
  more: number;
  /** Why the rows are not those of now: the stream is broken, or the server cannot follow the cluster. */
  problem: string;
}

const EMPTY: Listing = { rows: new Map(), isLoaded: false, more: 0, problem: "" };

/** The rows of a list by `NAMESPACE/NAME`, with what is new. */
export function applied<T extends { namespace: string; name: string }>(rows: ReadonlyMap<string, T>, news: Rows<T>): Map<string, T> {
  if (news.all) return new Map(news.all.map((row) => [id(row), row]));
  const next = new Map(rows);
  for (const row of news.changed ?? []) next.set(id(row), row);
  for (const [namespace, name] of news.gone ?? []) next.delete(id({ namespace, name }));
  return next;
}

export function received(listing: Listing, { name, data }: ServerEvent): Listing {
  if (name === "rows") return { ...listing, rows: applied(listing.rows, data as Rows), isLoaded: true, more: (data as Rows).more ?? 0 };
  if (name === "problem") return { ...listing, problem: (data as StreamProblem).text };
  return listing;
}

let shown = EMPTY;
let close: (() => void) | undefined;
const viewers = new Set<() => void>();

function show(next: Listing): void {
  shown = next;
  for (const viewer of viewers) viewer();
}

/** The rows, by one stream for all parts of the page that show some. */
export function useListing(): Listing {
  const [, refresh] = useState(0);
  useEffect(() => {
    const viewer = () => refresh((count) => count + 1);
    viewers.add(viewer);
    close ??= follow("/api/trainjobs", {
      event: (event) => show(received(shown, event)),
      state: (problem) => show({ ...shown, problem }),
    });
    viewer();
    return () => {
      viewers.delete(viewer);
      if (viewers.size > 0) return;
      close?.();
      close = undefined;
      shown = EMPTY;
    };
  }, []);
  return shown;
}
