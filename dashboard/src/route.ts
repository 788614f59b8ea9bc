// The address of the page: which view is shown, with its filters.

import { useEffect, useState } from "preact/hooks";
import { fragment } from "./api";

export type Tab = "overview" | "logs" | "yaml";

export type Route =
  | { view: "list" }
  | { view: "job"; namespace: string; name: string; tab: Tab };

export function parse(path: string): Route {
  const [first, namespace, name, tab] = path.split("/").slice(1).map(decoded);
  if (first !== "jobs" || !namespace || !name) return { view: "list" };
  return { view: "job", namespace, name, tab: tab === "logs" || tab === "yaml" ? tab : "overview" };
}

function decoded(part: string): string {
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

/** The address of a view, with the token, for `href`. */
export function href(path: string): string {
  return path + fragment();
}

const MOVED = "moved";

export function go(path: string, how: "push" | "replace" = "push"): void {
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
  window.scrollTo(0, 0);
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
