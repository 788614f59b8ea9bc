// The rows of the list, kept by a stream.

import { useEffect, useState } from "preact/hooks";
import { follow } from "../api";
import type { ServerEvent } from "../sse";
import type { Row, StreamProblem } from "../model";
import { id } from "./filters";

interface Rows {
  all?: Row[];
  changed?: Row[];
  gone?: [string, string][];
}

export interface Listing {
  rows: ReadonlyMap<string, Row>;
  isLoaded: boolean;
  /** Why the rows are not those of now: the stream is broken, or the server cannot follow the cluster. */
  problem: string;
}

export function apply(rows: ReadonlyMap<string, Row>, news: Rows): Map<string, Row> {
  if (news.all) return new Map(news.all.map((row) => [id(row), row]));
  const next = new Map(rows);
  for (const row of news.changed ?? []) next.set(id(row), row);
  for (const [namespace, name] of news.gone ?? []) next.delete(id({ namespace, name }));
  return next;
}

export function received(listing: Listing, { name, data }: ServerEvent): Listing {
  if (name === "rows") return { ...listing, rows: apply(listing.rows, data as Rows), isLoaded: true };
  if (name === "problem") return { ...listing, problem: (data as StreamProblem).text };
  return listing;
}

export function useListing(): Listing {
  const [listing, setListing] = useState<Listing>({ rows: new Map(), isLoaded: false, problem: "" });
  useEffect(
    () =>
      follow("/api/trainjobs", {
        event: (event) => setListing((before) => received(before, event)),
        state: (problem) => setListing((before) => ({ ...before, problem })),
      }),
    [],
  );
  return listing;
}
