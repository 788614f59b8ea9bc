// Sweeps of the history: in the shapes of those on the cluster, and with what only a history knows.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { request } from "../api";
import type { Importance, Sweep, SweepRow, Trial } from "../model";
import { type PastId, pastId } from "../route";

export interface OnlyPast {
  /** When it was gone from the cluster; null while it is there. */
  deleted: string | null;
  /** How long it took; null where that is not known. */
  seconds: number | null;
}

export type PastSweepRow = SweepRow & OnlyPast;

export interface KeptSweep {
  sweep: Sweep & OnlyPast;
  trials: Trial[];
  importance: Importance;
  problems: string[];
}

interface Page {
  sweeps: PastSweepRow[];
  /** What to ask for the next page with; "" if there is none. */
  next: string;
}

export interface PastSweeps {
  sweeps: readonly PastSweepRow[];
  next: string;
  problem: string;
}

const EMPTY: PastSweeps = { sweeps: [], next: "", problem: "" };

/** The path of the API for a past sweep. */
export function pastSweepApiPath(id: PastId): string {
  return `/api/past/sweeps/${pastId(id)}`;
}

/** The path of the API for a page of the sweeps that are gone from the cluster. */
export function goneSweepsPath(text: string, namespace: string, after = ""): string {
  const query = new URLSearchParams({ deleted: "true", ...(text && { q: text }), ...(namespace && { namespace }), ...(after && { after }) });
  return `/api/past/sweeps?${query}`;
}

/** A list with another page; one that comes twice is left out. */
export function withPage(before: PastSweeps, { sweeps, next }: Page): PastSweeps {
  const known = new Set(before.sweeps.map(({ uid }) => uid));
  return { sweeps: before.sweeps.concat(sweeps.filter(({ uid }) => !known.has(uid))), next, problem: "" };
}

/** The sweeps that are gone, where there is a history; `more` reads their next page. */
export function useGoneSweeps(hasHistory: boolean, text: string, namespace: string): PastSweeps & { more(): void } {
  const [listing, setListing] = useState(EMPTY);
  const asked = useRef("");
  const ask = useCallback((path: string, before: PastSweeps) => {
    asked.current = path;
    request<Page>("GET", path).then(
      (page) => asked.current === path && setListing(withPage(before, page)),
      (error: Error) => asked.current === path && setListing({ ...before, next: "", problem: error.message }),
    );
  }, []);
  useEffect(() => {
    if (!hasHistory) return;
    const timer = setTimeout(() => ask(goneSweepsPath(text, namespace), EMPTY), asked.current ? 250 : 0);
    return () => clearTimeout(timer);
  }, [hasHistory, text, namespace]);
  return { ...listing, more: () => ask(goneSweepsPath(text, namespace, listing.next), listing) };
}
