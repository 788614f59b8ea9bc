// What waits: TrainJobs, and Workloads of Kueue that are of something else.

import { id, phaseOf } from "../list/filters";
import type { Listed, Row, Workload } from "../model";

export interface Waiting {
  key: string;
  namespace: string;
  name: string;
  /** The TrainJob; null where another kind of object waits in a queue. */
  job: Listed | null;
  state: string;
  /** Why, by what the list knows; `explain` may know more. */
  why: string;
  /** Whether that is all there is to say: Kueue has said it. */
  isExplained: boolean;
  queue: string;
  place: number | null;
  gpus: number | null;
  since: string | null;
}

/** Whether a TrainJob waits for somebody or something before its pods run. */
export function isWaiting(row: Pick<Row, "state" | "isDeleted">): boolean {
  return phaseOf(row.state) === "waiting" && !row.isDeleted;
}

function ofJob(job: Listed, workload: Workload | undefined): Waiting {
  return {
    key: job.uid,
    namespace: job.namespace,
    name: job.name,
    job,
    state: workload ? "Queued" : job.state,
    why: workload?.message || job.message,
    isExplained: Boolean(workload?.message),
    queue: workload?.queue ?? "",
    place: workload?.place ?? null,
    gpus: workload?.gpus || job.gpus,
    since: workload?.created ?? job.since ?? job.created,
  };
}

function ofWorkload(workload: Workload): Waiting {
  return {
    key: workload.uid,
    namespace: workload.namespace,
    name: workload.owner || workload.name,
    job: null,
    state: "Queued",
    why: workload.message,
    isExplained: true,
    queue: workload.queue,
    place: workload.place,
    gpus: workload.gpus,
    since: workload.created,
  };
}

/** Whether somebody has suspended it, so that it waits for nothing but them. */
function isSuspended({ state }: Waiting): boolean {
  return state === "Suspended";
}

/** All that waits, the longest first; what somebody has suspended comes last. */
export function waiting(rows: readonly Listed[], workloads: readonly Workload[]): Waiting[] {
  const jobs = rows.filter(isWaiting);
  const known = new Set(jobs.map(id));
  const byTraining = new Map(workloads.filter(({ training }) => training).map((each) => [id({ ...each, name: each.training }), each]));
  const others = workloads.filter((each) => !each.training || !known.has(id({ ...each, name: each.training })));
  const all = [...jobs.map((job) => ofJob(job, byTraining.get(id(job)))), ...others.map(ofWorkload)];
  return all.sort((a, b) => Number(isSuspended(a)) - Number(isSuspended(b)) || compare(a.since ?? "~", b.since ?? "~") || compare(a.key, b.key));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** All of it in words: `12 wait, for 96 GPUs together; 3 suspended`. */
export function summary(all: readonly Waiting[]): string {
  const waits = all.filter((each) => !isSuspended(each));
  const gpus = waits.reduce((sum, each) => sum + (each.gpus ?? 0), 0);
  return [
    waits.length > 0 && `${waits.length} ${waits.length === 1 ? "waits" : "wait"}${gpus > 0 ? `, for ${wanted(gpus, waits.length)}` : ""}`,
    waits.length < all.length && `${all.length - waits.length} suspended`,
  ]
    .filter(Boolean)
    .join("; ");
}

function wanted(gpus: number, jobs: number): string {
  return `${gpus} ${gpus === 1 ? "GPU" : "GPUs"}${jobs > 1 ? " together" : ""}`;
}
