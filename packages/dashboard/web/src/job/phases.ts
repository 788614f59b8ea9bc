// The phases of a training: what it waited for, how long it ran, and what interrupted it.
// Conditions have the time of their last change alone, and pods are gone after a while: what was before is not known.

import type { Job, Node } from "../model";

export type PhaseName = "queued" | "starting" | "data" | "running" | "restarting" | "stalled" | "suspended" | "stopping" | "earlier";

export interface Phase {
  name: PhaseName;
  /** Milliseconds since 1970. */
  from: number;
  to: number;
}

type Known = Pick<Job, "state" | "created" | "started" | "ended" | "conditions">;
type Pod = Pick<Node, "uid" | "node" | "created"> & Partial<Pick<Node, "started" | "stopped" | "restarted">>;

const CONDITIONS: [type: string, name: PhaseName][] = [
  ["Restarting", "restarting"],
  ["Stalled", "stalled"],
  ["Suspended", "suspended"],
  ["Stopping", "stopping"], // of one that is suspended at the same time, it comes first
];
/** Milliseconds by which times of two processes may differ that belong to the same change. */
const SLACK = 5000;

/** From its creation to its end, or to now, in order and without gaps. Of several restarts or suspensions the last is known. */
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
  const [created, started, resumed] = [time(job.created)!, time(job.started), changed(job, "Suspended", "False")];
  const isResumed = started !== null && resumed !== null && resumed > started + SLACK;
  if (resumed !== null && !isResumed) {
    yield { at: created, name: "suspended" };
    yield { at: resumed, name: "queued" };
  }
  if (isResumed) {
    yield { at: started, name: "earlier" };
    yield* run(job, resumed, pods.filter((pod) => (time(pod.created) ?? resumed) >= resumed - SLACK));
  } else if (started !== null) yield* run(job, started, pods);
  for (const [type, name] of CONDITIONS) {
    const at = changed(job, type, "True");
    if (at !== null) yield { at, name };
  }
}

/** When a condition has become what it is now, if that is this status. */
function changed(job: Known, type: string, status: string): number | null {
  const condition = job.conditions.find((each) => each.type === type);
  return condition?.status === status ? time(condition.lastTransitionTime) : null;
}

/** What was since it was allowed to run, the last time. */
function* run(job: Known, allowed: number, pods: readonly Pod[]): Generator<Mark> {
  const data = pods.filter(({ node }) => node.includes("initializer"));
  const training = pods.filter((pod) => !data.includes(pod));
  const restart = restartOf(job, allowed, training);
  const begun = restart?.isOfAll ? allowed : earliest(training.map((pod) => time(pod.started)));
  const isKnown = begun !== null || pods.length > 0 || job.state === "Created";
  const admitted = admittedAt(job, allowed, pods, begun ?? Infinity);
  if (admitted > allowed || (begun === null && job.state === "Pending")) yield { at: allowed, name: "queued" };
  if (begun !== null || job.state !== "Pending") yield { at: admitted, name: isKnown ? "starting" : "running" };
  // Pods may have started before the status said that they may.
  const later = (at: number) => Math.max(at, allowed);
  const prepared = restart?.isOfAll ? null : earliest(data.map((pod) => time(pod.started)));
  if (prepared !== null) yield { at: later(prepared), name: "data" };
  if (begun !== null) yield { at: later(begun), name: "running" };
  if (restart) {
    yield { at: later(restart.from), name: "restarting" };
    if (restart.to !== null) yield { at: later(restart.to), name: "running" };
  }
}

/** When it had what it waited for, such as a place in a queue or a node: at the latest when something ran. */
function admittedAt(job: Known, allowed: number, pods: readonly Pod[], begun: number): number {
  const made = earliest(pods.map((pod) => time(pod.created)));
  const known = [changed(job, "Pending", "False"), made !== null && made > allowed + SLACK ? made : null];
  return Math.max(allowed, latest(known.filter((at) => at !== null && at <= begun)) ?? allowed);
}

interface Restart {
  from: number;
  /** When what was made anew began to run; null before. */
  to: number | null;
  /** Whether nothing is left of the run before, so that nobody knows when that began. */
  isOfAll: boolean;
}

/** The last restart: in its pod, by pods beside those that they replace, or by pods that are younger than a run that was. */
function restartOf(job: Known, allowed: number, pods: readonly Pod[]): Restart | null {
  const inPlace = latest(pods.map((pod) => time(pod.stopped)));
  if (inPlace !== null) {
    const pod = pods.find(({ stopped }) => time(stopped) === inPlace)!;
    return { from: inPlace, to: time(pod.restarted), isOfAll: false };
  }
  const present = new Map<string, Pod>();
  const replaced = new Set<string>();
  for (const pod of pods) {
    if (present.has(pod.node)) replaced.add(pod.node);
    else present.set(pod.node, pod);
  }
  const beside = [...present.values()].filter(({ node }) => replaced.has(node));
  if (beside.length > 0) return madeAnew(beside, false);
  const since = changed(job, "Restarting", "True");
  const until = since === null ? changed(job, "Restarting", "False") : null;
  const of = pods.filter((pod) => (time(pod.created) ?? allowed) <= (until ?? Infinity));
  const first = earliest(of.map((pod) => time(pod.created)));
  const isOfAll = first !== null && first > (since === null ? allowed + SLACK : since - SLACK);
  if (since !== null) return isOfAll ? { from: since, to: null, isOfAll } : null;
  if (until === null || until <= allowed) return null;
  if (isOfAll) return madeAnew(of, true);
  const begun = earliest(of.map((pod) => time(pod.started)));
  const younger = of.filter((pod) => begun !== null && time(pod.created)! > begun);
  return younger.length > 0 ? madeAnew(younger, false) : null;
}

function madeAnew(pods: readonly Pod[], isOfAll: boolean): Restart | null {
  const from = earliest(pods.map((pod) => time(pod.created)));
  return from === null ? null : { from, to: earliest(pods.map((pod) => time(pod.started))), isOfAll };
}

function latest(times: readonly (number | null)[]): number | null {
  return times.reduce((a, b) => (a === null || (b !== null && b > a) ? b : a), null);
}

function earliest(times: readonly (number | null)[]): number | null {
  const known = times.filter((each) => each !== null);
  return known.length > 0 ? known.reduce((a, b) => Math.min(a, b)) : null;
}

function time(text: string | null | undefined): number | null {
  const at = text ? Date.parse(text) : NaN;
  return Number.isNaN(at) ? null : at;
}
