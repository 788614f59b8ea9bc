// The phases of a training: what it waited for, how long it ran, and what interrupted it.

import type { Job, Node } from "../model";

export type PhaseName = "queued" | "starting" | "data" | "running" | "restarting" | "stalled" | "suspended";

export interface Phase {
  name: PhaseName;
  /** Milliseconds since 1970. */
  from: number;
  to: number;
}

type Known = Pick<Job, "state" | "created" | "started" | "ended" | "conditions">;
type Pod = Pick<Node, "uid" | "node" | "created"> & { started?: string | null };

const CONDITIONS: [type: string, name: PhaseName][] = [
  ["Restarting", "restarting"],
  ["Stalled", "stalled"],
  ["Suspended", "suspended"],
];

/** From its creation to its end, or to now, in order and without gaps; what pods are gone said of restarts is not known. */
export function phases(job: Known, pods: readonly Pod[], now: number): Phase[] {
  const created = time(job.created);
  if (created === null) return [];
  const end = Math.max(time(job.ended) ?? now, created);
  const marks = [...marksOf(job, pods)].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
  const found: Phase[] = [{ name: "queued", from: created, to: end }];
  for (const { at, name } of marks) {
    const last = found.at(-1)!;
    const from = Math.max(at, last.from);
    if (name === last.name) continue;
    last.to = from;
    if (last.from === last.to) found.pop();
    if (found.at(-1)?.name === name) found.at(-1)!.to = end;
    else found.push({ name, from, to: end });
  }
  return found.filter(({ from, to }) => to > from);
}

interface Mark {
  at: number;
  name: PhaseName;
}

function* marksOf(job: Known, pods: readonly Pod[]): Generator<Mark> {
  const started = time(job.started);
  const data = pods.filter(({ node }) => node.includes("initializer"));
  const training = pods.filter((pod) => !data.includes(pod));
  const begun = earliest(training.map((pod) => time(pod.started)));
  if (started !== null && (begun !== null || job.state !== "Pending")) {
    const isKnown = begun !== null || training.length > 0;
    yield { at: started, name: isKnown ? "starting" : "running" };
  }
  const prepared = earliest(data.map((pod) => time(pod.started)));
  if (prepared !== null) yield { at: prepared, name: "data" };
  if (begun !== null) yield { at: begun, name: "running" };
  yield* restarts(training);
  for (const { type, status, lastTransitionTime } of job.conditions) {
    const name = CONDITIONS.find(([known]) => known === type)?.[1];
    const at = time(lastTransitionTime);
    if (name && status === "True" && at !== null) yield { at, name };
  }
}

/** The last restart: pods that took the place of others, which are listed behind them. */
function* restarts(pods: readonly Pod[]): Generator<Mark> {
  const present = new Map<string, Pod>();
  const replaced = new Set<string>();
  for (const pod of pods) {
    if (present.has(pod.node)) replaced.add(pod.node);
    else present.set(pod.node, pod);
  }
  const fresh = [...present.values()].filter(({ node }) => replaced.has(node));
  const at = earliest(fresh.map((pod) => time(pod.created)));
  const again = earliest(fresh.map((pod) => time(pod.started)));
  if (at !== null) yield { at, name: "restarting" };
  if (again !== null) yield { at: again, name: "running" };
}

function earliest(times: readonly (number | null)[]): number | null {
  const known = times.filter((each) => each !== null);
  return known.length > 0 ? known.reduce((a, b) => Math.min(a, b)) : null;
}

function time(text: string | null | undefined): number | null {
  const at = text ? Date.parse(text) : NaN;
  return Number.isNaN(at) ? null : at;
}
