// The rows of the list, kept by a stream.

import type { Row, StreamProblem } from "../model";
import type { ServerEvent } from "../sse";
import { useStream } from "../stream";
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

const EMPTY: Listing = { rows: new Map(), isLoaded: false, problem: "" };

function apply(rows: ReadonlyMap<string, Row>, news: Rows): Map<string, Row> {
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
  return useStream("/api/trainjobs", EMPTY, received);
}
