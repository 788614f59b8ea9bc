// The page of a new TrainJob. What it is written with is large, and loaded with this page alone.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Back, Problem, useTitle } from "../parts";
import { href, jobPath, onLink } from "../route";
import type { ComposerProperties } from "./composer";

export function NewPage({ namespace, name, query }: { namespace: string; name: string; query: URLSearchParams }) {
  const [Composer, setComposer] = useState<ComponentType<ComposerProperties> | null>(null);
  const [problem, setProblem] = useState("");
  const origin = name ? { namespace, name } : null;
  useTitle(origin ? `New TrainJob from ${name}` : "New TrainJob");
  useEffect(() => {
    import("./composer").then(
      (loaded) => setComposer(() => loaded.Composer),
      () => setProblem("A part of this page could not be loaded. Load the page again: the dashboard may be a newer one by now."),
    );
  }, []);
  return (
    <main class="wide compose">
      <Back to={origin ? jobPath(namespace, name) : "/"}>{origin ? name : "All TrainJobs"}</Back>
      <header class="title">
        <h1 tabIndex={-1}>New TrainJob</h1>
        {origin && (
          <p class="quiet">
            A copy of{" "}
            <a href={href(jobPath(namespace, name))} onClick={onLink}>
              {name}
            </a>
            , without its state and what queues have added
          </p>
        )}
      </header>
      {problem && <Problem>{problem}</Problem>}
      {Composer ? <Composer origin={origin} query={query} /> : !problem && <p role="status">Loading ...</p>}
    </main>
  );
}
