// What can be done to several TrainJobs at once, by the requests that the page of each sends.

import { request, trainJobPath } from "../api";
import { ENDED, type Row } from "../model";

export type Action = "suspend" | "resume" | "delete";

/** Those that an action changes; the others have ended, are suspended already, and the like. */
export function affected<T extends Row>(action: Action, rows: readonly T[]): T[] {
  const present = rows.filter(({ isDeleted }) => !isDeleted);
  if (action === "delete") return present;
  return present.filter(({ state, isSuspended }) => !ENDED.has(state) && isSuspended === (action === "resume"));
}

function send(action: Action, row: Row): Promise<unknown> {
  const path = trainJobPath(row);
  const body = { uid: row.uid };
  return action === "delete" ? request("DELETE", path, body) : request("POST", `${path}/${action}`, body);
}

export interface Result {
  row: Row;
  /** Why it was refused; "" when it was done. */
  problem: string;
}

const AT_ONCE = 4;

/** Do it to each, some at the same time; `onResult` gets what came of each as it comes. */
export async function doAll(action: Action, rows: readonly Row[], onResult: (result: Result) => void, sent = send): Promise<void> {
  const waiting = [...rows];
  const work = async () => {
    for (let row = waiting.shift(); row; row = waiting.shift()) {
      try {
        await sent(action, row);
        onResult({ row, problem: "" });
      } catch (error) {
        onResult({ row, problem: (error as Error).message });
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, rows.length) }, work));
}
