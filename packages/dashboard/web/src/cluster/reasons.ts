// Why TrainJobs wait, as `trainer explain` says it: asked for those that are on the screen, one after the other.

import { useEffect, useState } from "preact/hooks";
import { request, trainJobPath } from "../api";
import { shown } from "../job/log_lines";
import type { Explanation, Listed } from "../model";

/** The list settles first, while somebody scrolls. */
const SETTLED = 400;
const GOOD_FOR = 60_000;
const MOST = 2000;

interface Reason {
  version: string;
  text: string;
  time: number;
}

const known = new Map<string, Reason>();

function version({ state, message, isSuspended }: Listed): string {
  return JSON.stringify([state, message, isSuspended]);
}

/** The jobs whose reason is not known, or has been known for too long. */
export function unexplained(jobs: readonly Listed[], reasons: ReadonlyMap<string, Reason>, now: number): Listed[] {
  return jobs.filter((job) => {
    const reason = reasons.get(job.uid);
    return !reason || reason.version !== version(job) || now - reason.time > GOOD_FOR;
  });
}

/** The sentence of an answer: its first cause, else its first note. */
export function sentence({ causes, notes }: Pick<Explanation, "causes" | "notes">): string {
  return shown(causes[0]?.message ?? notes[0] ?? "");
}

/** Ask about one, with the rights of the user; where there is no answer, what the list knows has to do. */
async function ask(job: Listed, signal: AbortSignal): Promise<void> {
  let text = "";
  try {
    const answer = await request<Explanation | null>("GET", `${trainJobPath(job)}/explanation`, undefined, signal);
    if (answer) text = sentence(answer);
  } catch {
    if (signal.aborted) return;
  }
  if (known.size >= MOST) known.clear();
  known.set(job.uid, { version: version(job), text, time: Date.now() });
}

/** The reasons of these jobs by UID, as they become known. */
export function useReasons(jobs: readonly Listed[]): (job: Listed) => string {
  const [, refresh] = useState(0);
  const wanted = jobs.map((job) => `${job.uid} ${version(job)}`).join();
  useEffect(() => {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const askAll = async () => {
      for (const job of document.hidden ? [] : unexplained(jobs, known, Date.now())) {
        await ask(job, controller.signal);
        if (controller.signal.aborted) return;
        refresh((count) => count + 1);
      }
      timer = setTimeout(() => void askAll(), GOOD_FOR);
    };
    timer = setTimeout(() => void askAll(), SETTLED);
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [wanted]);
  return (job) => known.get(job.uid)?.text ?? "";
}
