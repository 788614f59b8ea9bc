// The namespace that the page is about, over its views: it is part of the address of those that list something.

import type { Route } from "../route";

/** Views that show one namespace, or all, as their address says. */
const LISTING = new Set<Route["view"]>(["list", "sweeps", "history", "runtimes", "cluster"]);

/** The namespace of a view; undefined of one whose address says nothing about it. */
export function namespaceIn(route: Route, query: URLSearchParams): string | undefined {
  return LISTING.has(route.view) ? (query.get("namespace") ?? "") : undefined;
}

/** The address of a view for a namespace; "" is all of them. */
export function within(path: string, namespace: string, query: URLSearchParams = new URLSearchParams()): string {
  const next = new URLSearchParams(query);
  if (namespace) next.set("namespace", namespace);
  else next.delete("namespace");
  return next.size > 0 ? `${path}?${next}` : path;
}

/** Where to go when a namespace is chosen: the same list, or from any other page that of the TrainJobs. */
export function chosen(route: Route, path: string, query: URLSearchParams, namespace: string): string {
  return LISTING.has(route.view) ? within(path, namespace, query) : within("/", namespace);
}
