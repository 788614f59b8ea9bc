// The page of one sweep.

import { useContext } from "preact/hooks";
import { sweepApiPath } from "../api";
import { HasHistory } from "../history/store";
import { Back, Problem, Problems, Tone, Yaml, useTitle } from "../parts";
import { type SweepTab, href, onLink, pastSweepPath, sweepPath, useLocation } from "../route";
import { SweepActions } from "./actions";
import { useSweep } from "./store";
import { SweepFacts } from "./summary";
import "./sweeps.css";
import { SweepView } from "./view";

const TABS: [SweepTab, string][] = [
  ["overview", "Overview"],
  ["yaml", "YAML"],
];

export function SweepPage({ namespace, name, tab }: { namespace: string; name: string; tab: SweepTab }) {
  const state = useSweep(namespace, name);
  const { sweep } = state;
  const { query } = useLocation();
  const search = query.size > 0 ? `?${query}` : "";
  useTitle(sweep ? `${name}: ${sweep.state}` : name);
  return (
    <main class="wide sweep">
      <Back to="/sweeps">All sweeps</Back>
      <header class="title">
        <h1 tabIndex={-1}>
          {name} <span class="namespace">{namespace}</span>
        </h1>
        {sweep && !state.isGone && <Tone of={sweep.isDeleted ? "Deleting" : sweep.state} />}
        {sweep && !state.isGone && <SweepActions sweep={sweep} />}
      </header>
      {state.problem && <Problem>{state.problem}</Problem>}
      {state.isGone && <Gone path={sweep ? pastSweepPath(sweep) : `/sweeps?${new URLSearchParams({ q: name, namespace })}`} isKnown={sweep !== null} />}
      {!sweep && !state.isGone && !state.problem && <p role="status">Loading ...</p>}
      {sweep && (
        <>
          {sweep.message && (sweep.state === "Failed" || sweep.state === "Blocked") && <p class={`message ${sweep.state === "Failed" ? "bad" : ""}`}>{sweep.message}</p>}
          <Problems of={state.problems} />
          <SweepFacts sweep={sweep} trials={state.trials ?? []} command={`trainer get sweep ${name} -n ${namespace}`} />
          <nav class="tabs" aria-label="Views of the sweep">
            {TABS.map(([key, title]) => (
              <a key={key} href={href(sweepPath({ namespace, name }, key) + search)} onClick={onLink} aria-current={key === tab ? "page" : undefined}>
                {title}
              </a>
            ))}
          </nav>
          {tab === "overview" && <SweepView content={{ ...state, sweep }} canCopy={!state.isGone} />}
          {tab === "yaml" && <Yaml path={`${sweepApiPath({ namespace, name })}/yaml`} version={state.isGone ? null : sweep.resourceVersion} of="sweep" />}
        </>
      )}
    </main>
  );
}

/** Why nothing changes any more, and where the history has what it was. */
function Gone({ isKnown, path }: { isKnown: boolean; path: string }) {
  return (
    <>
      <Problem>{isKnown ? "This sweep was deleted. What is shown was its last state." : "There is no such sweep."}</Problem>
      {useContext(HasHistory) && (
        <p>
          <a href={href(path)} onClick={onLink}>
            Look for it in the history
          </a>
        </p>
      )}
    </>
  );
}
