// The address of the page: which view is shown, with its filters.

import { useEffect, useState } from "preact/hooks";
import { fragment } from "./api";
import { CLUSTER_WIDE } from "./model";

export type Tab = "overview" | "logs" | "yaml" | "objects";

export type PastTab = Exclude<Tab, "yaml">;

export type SweepTab = Extract<Tab, "overview" | "yaml">;

const TABS: readonly string[] = ["logs", "yaml", "objects"];
const PAST_TABS: readonly string[] = ["logs", "objects"];

export type Route =
  | { view: "list" }
  | { view: "runtimes" }
  | { view: "cluster" }
  | { view: "sweeps" }
  | { view: "sweep"; namespace: string; name: string; tab: SweepTab }
  | { view: "pastSweep"; namespace: string; name: string; uid: string }
  | { view: "history" }
  | { view: "past"; namespace: string; name: string; uid: string; tab: PastTab }
  | { view: "compare" }
  /** A copy of the TrainJob with this name; an empty one without. */
  | { view: "new"; namespace: string; name: string }
  | { view: "runtime"; kind: string; namespace: string; name: string }
  | { view: "job"; namespace: string; name: string; tab: Tab };

export function parse(path: string): Route {
  const [first, namespace, name, tab, pastTab] = path.split("/").slice(1).map(decoded);
  if (first === "history" && namespace && name && tab)
    return { view: "past", namespace, name, uid: tab, tab: pastTab && PAST_TABS.includes(pastTab) ? (pastTab as PastTab) : "overview" };
  if (first === "history") return { view: "history" };
  if (first === "clusterruntimes" && namespace) return { view: "runtime", kind: CLUSTER_WIDE, namespace: "", name: namespace };
  if (first === "runtimes" && namespace && name) return { view: "runtime", kind: "TrainingRuntime", namespace, name };
  if (first === "new") return namespace && name ? { view: "new", namespace, name } : { view: "new", namespace: "", name: "" };
  if (first === "compare") return { view: "compare" };
  if (first === "cluster") return { view: "cluster" };
  if (first === "past-sweeps" && namespace && name && tab) return { view: "pastSweep", namespace, name, uid: tab };
  if (first === "sweeps" && namespace && name) return { view: "sweep", namespace, name, tab: tab === "yaml" ? tab : "overview" };
  if (first === "sweeps") return { view: "sweeps" };
  if (first === "runtimes") return { view: "runtimes" };
  if (first !== "jobs" || !namespace || !name) return { view: "list" };
  return { view: "job", namespace, name, tab: tab && TABS.includes(tab) ? (tab as Tab) : "overview" };
}

/** A part of an address; "" where it is none. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

export function jobPath(namespace: string, name: string, tab: Tab = "overview"): string {
  const base = `/jobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  return tab === "overview" ? base : `${base}/${tab}`;
}

/** A training that has ended or is gone: several may have had its name. */
export interface PastId {
  namespace: string;
  name: string;
  uid: string;
}

/** How a training is named in addresses. */
export function pastId({ namespace, name, uid }: PastId): string {
  return [namespace, name, uid].map(encodeURIComponent).join("/");
}

export function pastPath(id: PastId, tab: PastTab = "overview"): string {
  const base = `/history/${pastId(id)}`;
  return tab === "overview" ? base : `${base}/${tab}`;
}

export function sweepPath({ namespace, name }: { namespace: string; name: string }, tab: SweepTab = "overview"): string {
  const base = `/sweeps/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  return tab === "overview" ? base : `${base}/${tab}`;
}

/** The path of a sweep that has ended or is gone: several may have had its name. */
export function pastSweepPath(id: PastId): string {
  return `/past-sweeps/${pastId(id)}`;
}

/** The path of a new TrainJob that begins as a trial of a sweep. */
export function trialCopyPath({ namespace, name }: { namespace: string; name: string }, trial: number): string {
  return `/new?${new URLSearchParams({ namespace, sweep: name, trial: String(trial) })}`;
}

export function runtimePath({ kind, namespace, name }: { kind: string; namespace: string; name: string }): string {
  if (kind === CLUSTER_WIDE) return `/clusterruntimes/${encodeURIComponent(name)}`;
  return `/runtimes/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

/** The path of a new TrainJob that begins as a copy of another. */
export function clonePath({ namespace, name }: { namespace: string; name: string }): string {
  return `/new/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

/** The path of a new TrainJob that builds on a runtime, or on one that is still to be chosen. */
export function newPath(runtime?: { kind: string; namespace: string; name: string }): string {
  if (!runtime) return "/new";
  const { kind, namespace, name } = runtime;
  return `/new?${new URLSearchParams({ runtime: name, kind, ...(namespace && { namespace }) })}`;
}

/** The path of a comparison of TrainJobs, and of trainings of the history. */
export function comparePath(jobs: readonly { namespace: string; name: string }[], past: readonly PastId[] = []): string {
  const query = new URLSearchParams(jobs.map(({ namespace, name }) => ["job", `${namespace}/${name}`]));
  for (const each of past) query.append("past", pastId(each));
  return query.size > 0 ? `/compare?${query}` : "/compare";
}

/** The address of a view, with the token, for `href`. */
export function href(path: string): string {
  return path + fragment();
}

const MOVED = "moved";

let guard: ((proceed: () => void) => void) | null = null;
let guarded = "";

/** Have a function asked before another page is shown, until the returned one is called; it may proceed later. */
export function guardLeaving(ask: (proceed: () => void) => void): () => void {
  guard = ask;
  guarded = location.href;
  return () => {
    if (guard === ask) guard = null;
  };
}

/** Ask the guard; it is gone once it lets somebody proceed. */
function asked(proceed: () => void): boolean {
  if (!guard) return false;
  guard(() => {
    guard = null;
    proceed();
  });
  return true;
}

/** Do what ends the page, such as to log out, after the guard was asked. */
export function leave(proceed: () => void): void {
  if (!asked(proceed)) proceed();
}

function onBack(event: Event): void {
  const wanted = location.href;
  if (wanted === guarded || !asked(() => history.back())) return;
  // The browser has gone back already: its page is kept below, and this one is shown again.
  event.stopImmediatePropagation();
  history.pushState(null, "", guarded);
}

export function go(path: string, how: "push" | "replace" = "push"): void {
  if (how === "push" && asked(() => go(path))) return;
  const address = path + location.hash;
  if (how === "push") history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  window.dispatchEvent(new Event(MOVED));
}

/** Follow a plain click on a link without loading the page again; other clicks are the browser's. */
export function onLink(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.currentTarget as HTMLAnchorElement;
  event.preventDefault();
  go(link.pathname + link.search);
  if (location.pathname === link.pathname) window.scrollTo(0, 0);
}

/** Listen before all others that the browser tells of its moves. */
export function watchMoves(): void {
  window.addEventListener("popstate", onBack);
}

export function useLocation(): { path: string; query: URLSearchParams } {
  const [, refresh] = useState(0);
  useEffect(() => {
    const listen = () => refresh((count) => count + 1);
    window.addEventListener("popstate", listen);
    window.addEventListener(MOVED, listen);
    return () => {
      window.removeEventListener("popstate", listen);
      window.removeEventListener(MOVED, listen);
    };
  }, []);
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}
