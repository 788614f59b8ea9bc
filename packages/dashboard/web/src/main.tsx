// The dashboard.

import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ClusterPage } from "./cluster/page";
import { ComparePage } from "./compare/page";
import { HistoryPage } from "./history/list";
import { PastPage } from "./history/page";
import { HasHistory } from "./history/store";
import { JobPage } from "./job/page";
import { List } from "./list/list";
import { LogIn, Who, useSession } from "./login";
import { Problem } from "./parts";
import { type Route, href, jobPath, onLink, parse, pastId, pastPath, runtimePath, useLocation } from "./route";
import { RuntimeList } from "./runtimes/list";
import { RuntimePage } from "./runtimes/page";
import { NewPage } from "./submit/page";
import "./style.css";

function App() {
  const { path, query } = useLocation();
  const session = useSession();
  const { cluster, problem } = session;
  const route = parse(path);
  useHeadingFocus(pageOf(route));
  return (
    <>
      <header class="bar">
        <a class="brand" href={href("/")} onClick={onLink}>
          Trainer
        </a>
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
        {cluster && (
          <span class="cluster">
            {[cluster.cluster, cluster.namespace && `namespace ${cluster.namespace}`].filter(Boolean).join(", ")}
          </span>
        )}
        {cluster && <Who session={session} cluster={cluster} />}
      </header>
      {session.isAsked && <LogIn session={session} />}
      {problem && !session.isAsked && (
        <main>
          <h1>TrainJobs</h1>
          <Problem>{problem}</Problem>
        </main>
      )}
      {cluster && (
        <HasHistory.Provider value={cluster.hasHistory}>
          <View of={route} query={query} />
        </HasHistory.Provider>
      )}
    </>
  );
}

const VIEWS: [address: string, title: string, views: Route["view"][]][] = [
  ["/", "TrainJobs", ["list", "job", "compare", "new"]],
  ["/history", "History", ["history", "past"]],
  ["/runtimes", "Runtimes", ["runtimes", "runtime"]],
  ["/cluster", "Cluster", ["cluster"]],
];

function View({ of, query }: { of: Route; query: URLSearchParams }) {
  switch (of.view) {
    case "list":
      return <List query={query} />;
    case "job":
      return <JobPage {...of} />;
    case "compare":
      return <ComparePage query={query} />;
    case "new":
      return <NewPage key={`${of.namespace}/${of.name}`} {...of} />;
    case "history":
      return <HistoryPage query={query} />;
    case "past":
      return <PastPage key={pastId(of)} {...of} />;
    case "cluster":
      return <ClusterPage />;
    case "runtimes":
      return <RuntimeList />;
    case "runtime":
      return <RuntimePage {...of} />;
  }
}

/** The page of a route, of which its tabs are parts. */
function pageOf(route: Route): string {
  if (route.view === "job") return jobPath(route.namespace, route.name);
  if (route.view === "past") return pastPath(route);
  return route.view === "runtime" ? runtimePath(route) : route.view;
}

/** Focus the heading when another page is shown: the link that had the focus is gone, and readers begin there. */
function useHeadingFocus(page: string): void {
  const before = useRef(page);
  useEffect(() => {
    if (before.current === page) return;
    before.current = page;
    document.querySelector("h1")?.focus({ preventScroll: true });
  }, [page]);
}

// An address with another token, pasted into this tab, only changes the fragment: the browser does not load it.
window.addEventListener("hashchange", () => location.reload());

render(<App />, document.getElementById("app")!);
