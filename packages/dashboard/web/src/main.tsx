// The dashboard.

// Before the pages: the styles of a page follow those that all have.
import "./theme.css";
import "./style.css";
import "./shell/shell.css";
import "./list/list.css";
import "./job/job.css";
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ClusterPage } from "./cluster/page";
import { ComparePage } from "./compare/page";
import { HistoryPage } from "./history/list";
import { PastPage } from "./history/page";
import { HasHistory } from "./history/store";
import { JobPage } from "./job/page";
import { List } from "./list/list";
import { LogIn, useSession } from "./login";
import { Problem } from "./parts";
import { type Route, jobPath, parse, pastId, pastPath, pastSweepPath, runtimePath, sweepPath, useLocation, watchMoves } from "./route";
import { RuntimeList } from "./runtimes/list";
import { RuntimePage } from "./runtimes/page";
import { Header } from "./shell/header";
import { Palette } from "./shell/palette";
import { Toasts } from "./shell/toasts";
import { NewPage } from "./submit/page";
import { SweepList } from "./sweeps/list";
import { SweepPage } from "./sweeps/page";
import { PastSweepPage } from "./sweeps/past_page";
import { startTheme } from "./theme";

function App() {
  const { path, query } = useLocation();
  const [isSearching, setSearching] = useState(false);
  const session = useSession();
  const { cluster, problem } = session;
  const route = parse(path);
  useHeadingFocus(pageOf(route));
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      // An editor on a Mac deletes the rest of the line by it.
      if (event.defaultPrevented || event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      setSearching((isOpen) => !isOpen);
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, []);
  return (
    <>
      <Header route={route} session={session} onSearch={() => setSearching(true)} />
      {session.isAsked && <LogIn session={session} />}
      {problem && !session.isAsked && (
        <main>
          <h1>TrainJobs</h1>
          <Problem>{problem}</Problem>
        </main>
      )}
      {cluster && (
        <HasHistory.Provider value={cluster.hasHistory}>
          <View of={route} query={query} hasSweeps={cluster.hasSweeps} />
          {isSearching && <Palette route={route} cluster={cluster} onClose={() => setSearching(false)} />}
        </HasHistory.Provider>
      )}
      <Toasts />
    </>
  );
}

function View({ of, query, hasSweeps }: { of: Route; query: URLSearchParams; hasSweeps: boolean }) {
  switch (of.view) {
    case "list":
      return <List query={query} />;
    case "job":
      return <JobPage {...of} />;
    case "compare":
      return <ComparePage query={query} />;
    case "new":
      return <NewPage key={`${of.namespace}/${of.name}/${query.get("sweep")}/${query.get("trial")}`} {...of} query={query} />;
    case "history":
      return <HistoryPage query={query} />;
    case "past":
      return <PastPage key={pastId(of)} {...of} />;
    case "cluster":
      return <ClusterPage query={query} />;
    case "sweeps":
      return <SweepList query={query} isShown={hasSweeps} />;
    case "sweep":
      return <SweepPage key={sweepPath(of)} {...of} />;
    case "pastSweep":
      return <PastSweepPage key={pastId(of)} {...of} />;
    case "runtimes":
      return <RuntimeList query={query} />;
    case "runtime":
      return <RuntimePage {...of} />;
  }
}

/** The page of a route, of which its tabs are parts. */
function pageOf(route: Route): string {
  if (route.view === "job") return jobPath(route.namespace, route.name);
  if (route.view === "past") return pastPath(route);
  if (route.view === "sweep") return sweepPath(route);
  if (route.view === "pastSweep") return pastSweepPath(route);
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

startTheme();
watchMoves();
render(<App />, document.getElementById("app")!);
