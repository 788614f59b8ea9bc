// The rows of the list, kept by a stream.

import { useEffect, useRef, useState } from "preact/hooks";
import { follow } from "../api";
import type { Row } from "../model";
import { id } from "./filters";

interface Rows {
  all?: Row[];
  changed?: Row[];
  gone?: [string, string][];
}

export interface Listing {
  rows: ReadonlyMap<string, Row>;
  isLoaded: boolean;
  problem: string;
}

export function apply(rows: ReadonlyMap<string, Row>, news: Rows): Map<string, Row> {
  if (news.all) return new Map(news.all.map((row) => [id(row), row]));
  const next = new Map(rows);
  for (const row of news.changed ?? []) next.set(id(row), row);
  for (const [namespace, name] of news.gone ?? []) next.delete(id({ namespace, name }));
  return next;
}

export function useListing(): Listing {
  const [listing, setListing] = useState<Listing>({ rows: new Map(), isLoaded: false, problem: "" });
  const rows = useRef<Map<string, Row>>(new Map());
  useEffect(
    () =>
      follow("/api/trainjobs", {
        event({ data }) {
          rows.current = apply(rows.current, data as Rows);
          setListing({ rows: rows.current, isLoaded: true, problem: "" });
        },
        state: (problem) => setListing((before) => ({ ...before, problem })),
      }),
    [],
  );
  return listing;
}
