// The trainings of the history, read page by page as somebody scrolls to them.

import { createContext } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { request } from "../api";
import type { Past, PastList } from "../model";
import { type PastId, pastId } from "../route";

/** Whether the dashboard has a history. */
export const HasHistory = createContext(false);

/** Milliseconds without another letter, after which a search is sent. */
const PAUSE = 250;

export interface Listing {
  trainings: readonly Past[];
  namespaces: readonly string[];
  /** What to ask for the next page with; "" if there is none. */
  next: string;
  /** Why there are none, where nothing is recorded. */
  note: string;
  isLoaded: boolean;
  problem: string;
}

export const EMPTY: Listing = { trainings: [], namespaces: [], next: "", note: "", isLoaded: false, problem: "" };

/** The path of the API for a training. */
export function apiPath(id: PastId): string {
  return `/api/history/${pastId(id)}`;
}

/** The path of the API for a list. */
export function listPath(query: URLSearchParams, after = ""): string {
  const asked = new URLSearchParams(query);
  if (after) asked.set("after", after);
  return asked.size > 0 ? `/api/history?${asked}` : "/api/history";
}

/** A list with another page: the first one takes the place of what there was. */
export function joined(before: Listing, page: PastList, isFirst: boolean): Listing {
  const known = new Set(isFirst ? [] : before.trainings.map(({ uid }) => uid));
  const added = page.trainings.filter(({ uid }) => !known.has(uid));
  return {
    trainings: isFirst ? added : before.trainings.concat(added),
    namespaces: page.namespaces,
    next: page.next,
    note: page.note,
    isLoaded: true,
    problem: "",
  };
}

/** The trainings of a query; `more` reads the next page of them, if there is one. */
export function useHistory(query: URLSearchParams): Listing & { more(): void } {
  const [listing, setListing] = useState(EMPTY);
  const asked = useRef({ query: "", after: "", isFirst: true });
  const pending = useRef<AbortController>(undefined);
  const text = query.toString();
  const ask = useCallback((wanted: string, after: string) => {
    asked.current = { query: wanted, after, isFirst: false };
    const isCurrent = () => asked.current.query === wanted && asked.current.after === after;
    // A search may wait for its turn, which nobody needs once there is another.
    pending.current?.abort();
    pending.current = new AbortController();
    request<PastList>("GET", listPath(new URLSearchParams(wanted), after), undefined, pending.current.signal).then(
      (page) => isCurrent() && setListing((before) => joined(before, page, !after)),
      (error: Error) => isCurrent() && setListing((before) => ({ ...before, next: "", problem: error.message })),
    );
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => ask(text, ""), asked.current.isFirst ? 0 : PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  const more = () => {
    const { next } = listing;
    if (next && asked.current.after !== next && asked.current.query === text) ask(text, next);
  };
  return { ...listing, more };
}
