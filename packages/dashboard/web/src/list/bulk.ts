// What can be done to several TrainJobs at once, by the requests that the page of each sends.

import { request, trainJobPath } from "../api";
import { inTurn } from "../in_turn";
import { ENDED, type Rights, type Row } from "../model";

export type Action = "suspend" | "resume" | "delete";
export const ACTIONS: readonly Action[] = ["suspend", "resume", "delete"];

/** By namespace; null where nobody says, so that the API server decides, and absent until it is known. */
export type KnownRights = ReadonlyMap<string, Rights | null>;

/** Those that an action changes; the others have ended, are suspended already, and the like. */
export function affected<T extends Row>(action: Action, rows: readonly T[]): T[] {
  const present = rows.filter(({ isDeleted }) => !isDeleted);
  if (action === "delete") return present;
  return present.filter(({ state, isSuspended }) => !ENDED.has(state) && isSuspended === (action === "resume"));
}

function isForbidden(action: Action, namespace: string, rights: KnownRights): boolean {
  const known = rights.get(namespace);
  return known !== null && known !== undefined && !known[action === "resume" ? "suspend" : action];
}

/** Those that an action changes, and that its user may change. */
export function permitted<T extends Row>(action: Action, rows: readonly T[], rights: KnownRights): T[] {
  return affected(action, rows).filter(({ namespace }) => !isForbidden(action, namespace, rights));
}

/** Whether nothing of what an action would change is known yet to be forbidden or not. */
export function isUnknown(action: Action, rows: readonly Row[], rights: KnownRights): boolean {
  const changed = affected(action, rows);
  return changed.length > 0 && changed.every(({ namespace }) => !rights.has(namespace));
}

const NAMED = 3;

/** What may not be done to rows, in a sentence for each set of namespaces. */
export function refusals(rows: readonly Row[], rights: KnownRights): string[] {
  const verbs = new Map<string, Action[]>();
  for (const action of ACTIONS) {
    const namespaces = [...new Set(affected(action, rows).map(({ namespace }) => namespace))].filter((each) => isForbidden(action, each, rights)).sort();
    if (namespaces.length === 0) continue;
    const where = namespaces.length === 1 ? `the namespace ${namespaces[0]}` : `the namespaces ${listed(namespaces.slice(0, NAMED), namespaces.length)}`;
    verbs.set(where, [...(verbs.get(where) ?? []), action]);
  }
  return [...verbs].map(([where, actions]) => `You may not ${listed(actions, actions.length, "or")} TrainJobs in ${where}.`);
}

/** Words as a sentence has them, those that are left out by their number. */
function listed(words: readonly string[], count: number, joint = "and"): string {
  const all = count > words.length ? [...words, `${count - words.length} more`] : words;
  return all.length < 2 ? all.join("") : `${all.slice(0, -1).join(", ")} ${joint} ${all.at(-1)}`;
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

const DONE: Record<Action, string> = { suspend: "Suspended", resume: "Resumed", delete: "Deleted" };

/** What to say of all results: one text, however many were refused. */
export function outcome(action: Action, results: readonly Result[]): { text: string; tone: "good" | "bad" } {
  const refused = results.filter(({ problem }) => problem);
  const done = results.filter(({ problem }) => !problem).map(({ row }) => row.name);
  if (refused.length === 0) {
    return { text: `${DONE[action]} ${done.length > NAMED ? `${done.length} TrainJobs` : listed(done, done.length)}`, tone: "good" };
  }
  const { row, problem } = refused[0]!;
  if (results.length === 1) return { text: `${row.name}: ${problem}`, tone: "bad" };
  const others = new Set(refused.map((each) => each.problem)).size > 1 ? ", the first" : "";
  return { text: `${DONE[action]} ${done.length} of ${results.length} TrainJobs. ${refused.length} refused${others}: ${row.name}: ${problem}`, tone: "bad" };
}

const AT_ONCE = 4;

/** Do it to each, some at the same time; the results are in the order of the rows. */
export function doAll(action: Action, rows: readonly Row[], sent = send): Promise<Result[]> {
  const turn = inTurn(AT_ONCE);
  return Promise.all(
    rows.map((row) =>
      turn(() => sent(action, row)).then(
        () => ({ row, problem: "" }),
        (error: Error) => ({ row, problem: error.message }),
      ),
    ),
  );
}
