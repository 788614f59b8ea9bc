// Why a TrainJob does not run, as `trainer explain` says it.

import { useEffect, useRef, useState } from "preact/hooks";
import { request, trainJobPath } from "../api";
import type { Cause, Explanation, Job, Node } from "../model";
import { shown } from "./log_lines";
import { errorOf } from "./traceback";

const PAUSE = 3000;
const AGAIN = 30_000;

export interface Answer {
  explanation: Explanation | null;
  problem: string;
}

/** What an answer depends on and the page knows of; other changes, such as progress, ask for no other answer. */
export function dependsOn(job: Job, nodes: readonly Node[]): string {
  const conditions = job.conditions.map(({ type, status, reason, message }) => [type, status, reason, message]);
  const pods = nodes.map(({ uid, phase, reason, restarts }) => [uid, phase, reason, restarts]);
  return JSON.stringify([job.uid, job.state, job.isSuspended, job.isDeleted, conditions, pods]);
}

/** The answer about a TrainJob; asked for again when something changes, and now and then while it waits. */
export function useExplanation(job: Job, nodes: readonly Node[], isWanted: boolean): Answer {
  const [answer, setAnswer] = useState<Answer>({ explanation: null, problem: "" });
  const asked = useRef({ at: 0, count: 0, answered: 0 });
  useEffect(() => {
    if (!isWanted) return;
    let timer: ReturnType<typeof setTimeout>;
    const later = (pause: number) => {
      timer = setTimeout(ask, pause);
    };
    const ask = () => {
      if (document.hidden) return later(PAUSE);
      const number = ++asked.current.count;
      asked.current.at = Date.now();
      const show = (next: Answer) => {
        if (number < asked.current.answered) return;
        asked.current.answered = number;
        setAnswer(next);
      };
      request<Explanation | null>("GET", `${trainJobPath(job)}/explanation`).then(
        (explanation) => show({ explanation, problem: "" }),
        (error: Error) => show({ explanation: null, problem: error.message }),
      );
      later(AGAIN);
    };
    later(Math.max(asked.current.at + PAUSE - Date.now(), 0));
    return () => clearTimeout(timer);
  }, [dependsOn(job, nodes), isWanted]);
  return answer;
}

/** Reasons of trainings that run, and do not get on. */
const STALLED: readonly string[] = ["NoProgress", "NoReport"];

const TITLES: Record<Explanation["verdict"], string> = {
  running: "It runs, and something is wrong",
  succeeded: "It has succeeded, and something is to know",
  waiting: "Why it waits",
  failed: "Why it failed",
};

/** Reasons of trainings whose pods are to go, and are still there. */
const STOPPING: readonly string[] = ["StoppingPods", "SuspendingPods", "NodeNotReady"];

export function titleOf({ verdict, causes }: Pick<Explanation, "verdict" | "causes">): string {
  const reason = causes[0]?.reason ?? "";
  if (STOPPING.includes(reason)) return "Why it is stopping";
  return STALLED.includes(reason) ? "It makes no progress" : TITLES[verdict];
}

export function ExplanationView({ of: { explanation, problem } }: { of: Answer }) {
  if (problem) return <p class="message">There is no explanation: {problem}</p>;
  if (!explanation) return null;
  const { verdict, causes, notes, unread } = explanation;
  // What runs, or has succeeded, needs no words.
  if (causes.length === 0 && (verdict === "running" || verdict === "succeeded")) return null;
  if (causes.length + notes.length + unread.length === 0) return null;
  return (
    <section class={`explanation ${verdict}`} aria-label="Explanation">
      <h2>{titleOf(explanation)}</h2>
      {causes.map((cause, index) => (
        <CauseView key={`${cause.reason} ${cause.about} ${index}`} cause={cause} />
      ))}
      {notes.map((note) => (
        <p key={note}>{shown(note)}</p>
      ))}
      {unread.length > 0 && (
        <details>
          <summary>
            {unread.length === 1 ? "One thing" : `${unread.length} things`} could not be read, so a cause may be missing
          </summary>
          {unread.map(({ what, why }) => (
            <p key={what + why}>
              {shown(what)}: {shown(why)}
            </p>
          ))}
        </details>
      )}
    </section>
  );
}

function CauseView({ cause }: { cause: Cause }) {
  const details = cause.details.map(shown);
  // Of a traceback the last line comes first.
  const error = errorOf(details);
  return (
    <div class="cause">
      {error && <p class="error-title">{error}</p>}
      <p>
        <strong>{shown(cause.reason)}</strong> <span class="quiet">{shown(cause.about)}</span>
        <br />
        {shown(cause.message)}
      </p>
      {details.length > 0 && (
        <pre class="detail mono" tabIndex={0} aria-label="Details">
          {details.join("\n")}
        </pre>
      )}
      <p>
        <span class="quiet">Remedy:</span> {shown(cause.remedy)}
      </p>
      {cause.commands.map(shown).map((command) => (
        <p key={command}>
          <span class="quiet">Run:</span> <code class="command">{command}</code>
        </p>
      ))}
      <p>
        <span class="quiet">More:</span> <code class="command">{shown(cause.command)}</code>
      </p>
    </div>
  );
}
