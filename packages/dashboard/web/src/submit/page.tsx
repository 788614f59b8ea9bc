// The page of a new TrainJob. What it is written with is large, and loaded with this page alone.

import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { sweepApiPath, trainJobPath } from "../api";
import { Back, Problem, useTitle } from "../parts";
import { href, jobPath, onLink, sweepPath } from "../route";
import type { ComposerProperties, Origin } from "./composer";

interface Beginning {
  origin: Origin | null;
  /** The page that leads here. */
  path: string;
  name: string;
  /** What is copied, and how. */
  note: ComponentChildren;
}

/** What the address asks for: a copy of a TrainJob, or of a trial of a sweep, or an empty one. */
export function beginningOf({ namespace, name }: { namespace: string; name: string }, query: URLSearchParams): Beginning {
  const [sweep, trial, where] = [query.get("sweep"), query.get("trial") ?? "", query.get("namespace")];
  if (name) {
    const path = jobPath(namespace, name);
    const note = <>A copy of {link(path, name)}, without its state and what queues have added</>;
    return { origin: { place: `${namespace}/${name}`, copy: `${trainJobPath({ namespace, name })}/copy` }, path, name, note };
  }
  if (sweep && where && /^\d{1,4}$/.test(trial)) {
    const of = { namespace: where, name: sweep };
    const note = (
      <>
        Trial {trial} of the sweep {link(sweepPath(of), sweep)} with its parameters, as a TrainJob of its own. Give it more steps below.
      </>
    );
    return { origin: { place: `${where}/${sweep}/${trial}`, copy: `${sweepApiPath(of)}/trials/${trial}/copy` }, path: sweepPath(of), name: sweep, note };
  }
  return { origin: null, path: "/", name: "All TrainJobs", note: null };
}

function link(path: string, name: string) {
  return (
    <a href={href(path)} onClick={onLink}>
      {name}
    </a>
  );
}

export function NewPage({ namespace, name, query }: { namespace: string; name: string; query: URLSearchParams }) {
  const [Composer, setComposer] = useState<ComponentType<ComposerProperties> | null>(null);
  const [problem, setProblem] = useState("");
  const beginning = beginningOf({ namespace, name }, query);
  useTitle(beginning.origin ? `New TrainJob from ${beginning.name}` : "New TrainJob");
  useEffect(() => {
    import("./composer").then(
      (loaded) => setComposer(() => loaded.Composer),
      () => setProblem("A part of this page could not be loaded. Load the page again: the dashboard may be a newer one by now."),
    );
  }, []);
  return (
    <main class="wide compose">
      <Back to={beginning.path}>{beginning.name}</Back>
      <header class="title">
        <h1 tabIndex={-1}>New TrainJob</h1>
        {beginning.note && <p class="quiet">{beginning.note}</p>}
      </header>
      {problem && <Problem>{problem}</Problem>}
      {Composer ? <Composer origin={beginning.origin} query={query} /> : !problem && <p role="status">Loading ...</p>}
    </main>
  );
}
