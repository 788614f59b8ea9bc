// What has happened to a TrainJob: its milestones and conditions, and the events about it.

import { useNow } from "../clock";
import { age, duration, moment } from "../format";
import type { Job, KubeEvent, Node } from "../model";
import { shownLines } from "./log_lines";
import { type Phase, type PhaseName, phases } from "./phases";

interface Milestone {
  time: string;
  title: string;
  detail: string;
  tone: "good" | "bad" | "warn" | "rest";
}

const TONES: Record<string, Milestone["tone"]> = {
  Complete: "good",
  Failed: "bad",
  Pending: "warn",
  Stopping: "warn",
  Restarting: "warn",
  Stalled: "warn",
  Suspended: "warn",
};

/** The newest first. */
function milestones(job: Job): Milestone[] {
  const found: Milestone[] = [];
  if (job.created) found.push({ time: job.created, title: "Submitted", detail: "", tone: "rest" });
  if (job.started) found.push({ time: job.started, title: "Allowed to run", detail: "", tone: "rest" });
  for (const condition of job.conditions) {
    if (!condition.lastTransitionTime) continue;
    const isTrue = condition.status === "True";
    const isBlocked = condition.type === "Created" && !isTrue;
    found.push({
      time: condition.lastTransitionTime,
      title: isTrue ? condition.type : isBlocked ? "Not created" : `No longer ${condition.type}`,
      detail: [condition.reason, condition.message].filter(Boolean).join(": "),
      tone: isBlocked ? "bad" : isTrue ? (TONES[condition.type] ?? "rest") : "rest",
    });
  }
  return found.map((each, index) => ({ each, index })).sort((a, b) => compare(b.each.time, a.each.time) || b.index - a.index).map(({ each }) => each);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Its phases as one bar; the conditions of the TrainJob are folded below. */
export function Timeline({ job, nodes = [] }: { job: Job; nodes?: readonly Node[] }) {
  const now = useNow();
  return (
    <>
      <PhaseBar of={phases(job, nodes, now)} hasEnded={job.ended !== null} />
      <details class="fold">
        <summary>Conditions</summary>
        <Milestones job={job} now={now} />
      </details>
    </>
  );
}

const TITLES: Record<PhaseName, string> = {
  queued: "Queued",
  starting: "Starting",
  data: "Fetching data",
  running: "Running",
  restarting: "Restarting",
  stalled: "Stalled",
  suspended: "Suspended",
  stopping: "Stopping",
  earlier: "Ran, then suspended",
};

function PhaseBar({ of, hasEnded }: { of: readonly Phase[]; hasEnded: boolean }) {
  if (of.length === 0) return null;
  return (
    <ol class="phases" aria-label="Phases">
      {of.map(({ name, from, to }, index) => (
        <li key={`${name} ${from}`} class={name} style={{ flexGrow: Math.max(to - from, 1) }} title={`from ${moment(new Date(from).toISOString())}`}>
          <span class="phase-name">{TITLES[name]}</span> <span class="quiet">{duration((to - from) / 1000)}</span>
          {index === of.length - 1 && !hasEnded && <span class="unseen">, until now</span>}
        </li>
      ))}
    </ol>
  );
}

function Milestones({ job, now }: { job: Job; now: number }) {
  return (
    <ol class="timeline">
      {milestones(job).map((each) => (
        <li key={`${each.title} ${each.time}`} class={each.tone}>
          <div>
            <strong>{each.title}</strong>{" "}
            <time dateTime={each.time} title={moment(each.time)}>
              {age(each.time, now)} ago
            </time>
          </div>
          {each.detail && <pre class="detail">{each.detail}</pre>}
        </li>
      ))}
    </ol>
  );
}

interface EventsProperties {
  events: readonly KubeEvent[];
  none?: string;
}

/** Warnings, and folded behind them all else that happens to every training. */
export function Events({ events, none = "No events: clusters keep them for an hour or so." }: EventsProperties) {
  const warnings = events.filter(({ type }) => type === "Warning");
  const others = events.filter(({ type }) => type !== "Warning");
  if (events.length === 0) return <p class="nothing">{none}</p>;
  return (
    <>
      {warnings.length > 0 && <EventList events={warnings} />}
      {others.length > 0 && (
        <details class="fold">
          <summary>
            {others.length} {others.length === 1 ? "event" : "events"} without warnings
          </summary>
          <EventList events={others} />
        </details>
      )}
    </>
  );
}

function EventList({ events }: { events: readonly KubeEvent[] }) {
  const now = useNow();
  return (
    <ul class="events">
      {events.map((event) => (
        <li key={event.uid} class={event.type === "Warning" ? "warn" : ""}>
          <div>
            <strong>{event.reason}</strong> <span class="quiet">{event.object}</span>{" "}
            <time dateTime={event.last} title={moment(event.last)}>
              {age(event.last, now)} ago
            </time>
            {event.count > 1 && <span class="quiet">, {event.count} times</span>}
          </div>
          {event.message.includes("\n") ? <pre class="detail mono" tabIndex={0} aria-label={event.reason}>{shownLines(event.message)}</pre> : <p>{event.message}</p>}
        </li>
      ))}
    </ul>
  );
}
