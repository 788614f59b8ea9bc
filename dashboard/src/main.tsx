// The dashboard.

import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { JobPage } from "./job/page";
import { List } from "./list/list";
import { LogIn, Who, useSession } from "./login";
import { Problem } from "./parts";
import { href, jobPath, onLink, parse, useLocation } from "./route";
import "./style.css";

function App() {
  const { path, query } = useLocation();
  const session = useSession();
  const { cluster, problem } = session;
  const route = parse(path);
  useHeadingFocus(route.view === "job" ? jobPath(route.namespace, route.name) : "/");
  return (
    <>
      <header class="bar">
        <a class="brand" href={href("/")} onClick={onLink}>
          Trainer
        </a>
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
      {cluster && (route.view === "job" ? <JobPage {...route} /> : <List query={query} />)}
    </>
  );
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
