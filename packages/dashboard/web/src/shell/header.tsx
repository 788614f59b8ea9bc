// The header: the product, where it looks, its views, whether it is live, and the tools of every page.

import { useEffect, useRef } from "preact/hooks";
import { useNow } from "../clock";
import { useConnection } from "../connection";
import { duration } from "../format";
import { read, values, write } from "../list/filters";
import { useListing } from "../list/store";
import { type Cluster, type Session, Who } from "../login";
import { type Route, go, href, onLink, useLocation } from "../route";
import { THEMES, setTheme, useTheme } from "../theme";
import { Command, Copy } from "./copy";
import { Icon, Mark } from "./icons";

export const VIEWS: [address: string, title: string, views: Route["view"][]][] = [
  ["/", "TrainJobs", ["list", "job", "compare", "new"]],
  ["/history", "History", ["history", "past"]],
  ["/runtimes", "Runtimes", ["runtimes", "runtime"]],
  ["/cluster", "Cluster", ["cluster"]],
];

/** Views that list the TrainJobs of all namespaces, or of one that is chosen. */
const LISTING = new Set<Route["view"]>(["list", "runtimes", "cluster", "compare"]);

interface HeaderProperties {
  route: Route;
  session: Session;
  onSearch(): void;
}

export function Header({ route, session, onSearch }: HeaderProperties) {
  const { cluster } = session;
  const { path } = useLocation();
  return (
    <header class="bar">
      <a class="brand" href={href("/")} onClick={onLink}>
        <Mark />
        Trainer
      </a>
      {cluster && <Where cluster={cluster} isListing={LISTING.has(route.view)} />}
      <nav class="views" aria-label="Views">
        {VIEWS.filter(([address]) => address !== "/history" || cluster?.hasHistory).map(([address, title, views]) => (
          <a
            key={address}
            href={href(address)}
            onClick={onLink}
            aria-current={address === path ? "page" : views.includes(route.view) ? "true" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <div class="tools">
        <Live />
        {cluster && (
          <button type="button" class="search" aria-keyshortcuts="Control+K" onClick={onSearch}>
            <Icon of="search" />
            <span>Search</span>
            <kbd>Ctrl K</kbd>
          </button>
        )}
        <ThemeSwitch />
        {cluster && <Who session={session} cluster={cluster} />}
      </div>
    </header>
  );
}

/** The name of a cluster that people know it by: that of its context, else where its API server is. */
export function nameOf({ name, cluster }: Pick<Cluster, "name" | "cluster">): string {
  return name || cluster.replace(/^https?:\/\//, "").replace(/\/$/, "") || "this cluster";
}

function Where({ cluster, isListing }: { cluster: Cluster; isListing: boolean }) {
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      const isElsewhere = event instanceof KeyboardEvent ? event.key === "Escape" : !menu.current?.contains(event.target as Node);
      if (!menu.current?.open || !isElsewhere) return;
      menu.current.open = false;
      if (event instanceof KeyboardEvent) menu.current.querySelector("summary")?.focus();
    };
    window.addEventListener("pointerdown", close);
    window.addEventListener("keydown", close);
    return () => {
      window.removeEventListener("pointerdown", close);
      window.removeEventListener("keydown", close);
    };
  }, []);
  return (
    <div class="where">
      <details class="menu" ref={menu}>
        <summary aria-label={`Cluster ${nameOf(cluster)}`}>
          <span>{nameOf(cluster)}</span>
          <Icon of="down" />
        </summary>
        <div class="panel">
          <h2>{nameOf(cluster)}</h2>
          {cluster.cluster && (
            <p class="copied">
              <code>{cluster.cluster}</code>
              <Copy text={cluster.cluster} what="the address of the cluster" />
            </p>
          )}
          {cluster.login === "address" && (
            <>
              <p>Another cluster has a page of its own:</p>
              <Command>trainer dashboard --context NAME</Command>
            </>
          )}
        </div>
      </details>
      {cluster.namespace ? <span class="only">{cluster.namespace}</span> : isListing && <Namespaces />}
    </div>
  );
}

function Namespaces() {
  const { rows } = useListing();
  const { path, query } = useLocation();
  const filters = read(path === "/" ? query : new URLSearchParams());
  return (
    <select
      aria-label="Namespace"
      value={filters.namespace}
      onChange={(event) => go(write({ ...filters, namespace: event.currentTarget.value }), path === "/" ? "replace" : "push")}
    >
      <option value="">All namespaces</option>
      {values(rows.values(), "namespace", filters.namespace).map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </select>
  );
}

function Live() {
  const { state, since } = useConnection();
  const now = useNow();
  if (state === "none") return null;
  const seconds = duration((now - since) / 1000);
  if (state === "live")
    return (
      <span class="live good" title={`Heard from the cluster ${seconds} ago`}>
        Live<span class="ago">{seconds} ago</span>
      </span>
    );
  return <span class="live warn">{state === "connecting" ? "Connecting" : `Reconnecting, ${seconds}`}</span>;
}

function ThemeSwitch() {
  const theme = useTheme();
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
  return (
    <button type="button" class="icon" aria-label={`Theme: ${theme}`} title={`Theme: ${theme}. Change to ${next}`} onClick={() => setTheme(next)}>
      <Icon of={theme} />
    </button>
  );
}
