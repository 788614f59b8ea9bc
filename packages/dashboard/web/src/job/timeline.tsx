// What has happened to a TrainJob: its milestones and conditions, and the events about it.

import { useNow } from "../clock";
import { age, moment } from "../format";
import type { Job, KubeEvent } from "../model";

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

export function Timeline({ job }: { job: Job }) {
  const now = useNow();
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

export function Events({ events, none = "No events: clusters keep them for an hour or so." }: { events: KubeEvent[]; none?: string }) {
  const now = useNow();
  if (events.length === 0) return <p class="nothing">{none}</p>;
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
          <p>{event.message}</p>
        </li>
      ))}
    </ul>
  );
}
