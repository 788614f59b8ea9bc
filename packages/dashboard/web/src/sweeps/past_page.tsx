// The page of a sweep that has ended or is gone, with what was kept of it and of its trials.

import { moment } from "../format";
import { Ending } from "../history/parts";
import { Back, Loading, Problems, useTitle } from "../parts";
import { useAnswer } from "../polling";
import { type PastId, href, onLink, sweepPath } from "../route";
import { type KeptSweep, type PastSweepRow, pastSweepApiPath } from "./past";
import "./sweeps.css";
import { SweepFacts } from "./summary";
import { SweepView } from "./view";

export function PastSweepPage(id: PastId) {
  const answer = useAnswer<KeptSweep>(pastSweepApiPath(id), id.uid);
  const kept = answer.value;
  useTitle(`${id.name}: history`);
  return (
    <main class="wide sweep">
      <Back to="/sweeps">All sweeps</Back>
      <header class="title">
        <h1 tabIndex={-1}>
          {id.name} <span class="namespace">{id.namespace}</span>
        </h1>
        {kept && <Ending of={kept.sweep} />}
      </header>
      <Loading of={answer} />
      {kept && (
        <>
          <Presence of={kept.sweep} />
          {kept.sweep.message && kept.sweep.state === "Failed" && <p class="message bad">{kept.sweep.message}</p>}
          <Problems of={kept.problems} />
          <SweepFacts sweep={kept.sweep} trials={kept.trials} deleted={kept.sweep.deleted} command={`trainer history sweeps ${id.namespace}/${id.name}`} />
          <SweepView content={kept} canCopy={false} />
        </>
      )}
    </main>
  );
}

function Presence({ of }: { of: PastSweepRow }) {
  return (
    <p class="message">
      {of.deleted ? `This sweep is gone since ${moment(of.deleted)}. ` : ""}What is shown was kept by the history.{" "}
      {!of.deleted && (
        <a href={href(sweepPath(of))} onClick={onLink}>
          The sweep in the cluster
        </a>
      )}
    </p>
  );
}
