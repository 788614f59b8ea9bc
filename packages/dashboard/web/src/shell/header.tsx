// The header: the product, where it looks, its views, whether it is live, and the tools of every page.

import { useRef } from "preact/hooks";
import { useNow } from "../clock";
import { useConnection } from "../connection";
import { duration } from "../format";
import { type Cluster, type Session, Who } from "../login";
import { type Route, href, onLink, useLocation } from "../route";
import { THEMES, setTheme, useTheme } from "../theme";
import { Icon, Mark } from "./icons";
import { namespaceIn, within } from "./namespaces";
import { Where } from "./where";

const NOTHING_KNOWN = { hasHistory: false, hasSweeps: false };

const VIEWS: [address: string, title: string, views: Route["view"][]][] = [
  ["/", "TrainJobs", ["list", "job", "compare", "new"]],
  ["/sweeps", "Sweeps", ["sweeps", "sweep", "pastSweep"]],
  ["/history", "History", ["history", "past"]],
  ["/runtimes", "Runtimes", ["runtimes", "runtime"]],
  ["/cluster", "Cluster", ["cluster"]],
];

/** The views that there are on this cluster. */
export function viewsOf({ hasHistory, hasSweeps }: Pick<Cluster, "hasHistory" | "hasSweeps">): typeof VIEWS {
  return VIEWS.filter(([address]) => (address !== "/history" || hasHistory) && (address !== "/sweeps" || hasSweeps));
}

interface HeaderProperties {
  route: Route;
  session: Session;
  onSearch(): void;
}

export function Header({ route, session, onSearch }: HeaderProperties) {
  const { cluster } = session;
  const { path, query } = useLocation();
  // A page that is about no namespace, such as that of a TrainJob, leads back to the one that was chosen before.
  const namespace = useRef("");
  namespace.current = namespaceIn(route, query) ?? namespace.current;
  const to = (address: string) => href(within(address, namespace.current));
  return (
    <header class="bar">
      <a class="brand" href={to("/")} onClick={onLink}>
        <Mark />
        Trainer
      </a>
      {cluster && <Where cluster={cluster} route={route} namespace={namespace.current} />}
      <nav class="views" aria-label="Views">
        {viewsOf(cluster ?? NOTHING_KNOWN).map(([address, title, views]) => (
          <a
            key={address}
            href={to(address)}
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
  if (state === "connecting") return <span class="live warn">Connecting</span>;
  return (
    <span class="live warn" title={`What is shown is ${seconds} old`}>
      <span class="word">Reconnecting</span> {seconds}
    </span>
  );
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
