import { expect, test } from "vitest";
import type { Rights, Row } from "../model";
import { type Action, affected, doAll, isUnknown, outcome, permitted, refusals } from "./bulk";

function row(name: string, changes: Partial<Row> = {}): Row {
  return { name, namespace: "a", uid: name, state: "Running", isSuspended: false, isDeleted: false, ...changes } as Row;
}

const ROWS = [row("runs"), row("waits", { state: "Suspended", isSuspended: true }), row("done", { state: "Complete" }), row("going", { isDeleted: true })];

test.each<[Action, string[]]>([
  ["suspend", ["runs"]],
  ["resume", ["waits"]],
  ["delete", ["runs", "waits", "done"]],
])("%s changes %j", (action, names) => {
  expect(affected(action, ROWS).map(({ name }) => name)).toEqual(names);
});

const MAY: Rights = { suspend: true, delete: true, create: true };
const MIXED = [row("ours"), row("theirs", { namespace: "b" }), row("waits", { namespace: "b", isSuspended: true })];

test.each<[string, [string, Rights | null][], Record<Action, string[]>, string[]]>([
  ["all", [["a", MAY], ["b", MAY]], { suspend: ["ours", "theirs"], resume: ["waits"], delete: ["ours", "theirs", "waits"] }, []],
  [
    "nothing in one namespace", [["a", MAY], ["b", { ...MAY, suspend: false, delete: false }]], { suspend: ["ours"], resume: [], delete: ["ours"] },
    ["You may not suspend, resume or delete TrainJobs in the namespace b."],
  ],
  [
    "no deletion", [["a", { ...MAY, delete: false }], ["b", { ...MAY, delete: false }]], { suspend: ["ours", "theirs"], resume: ["waits"], delete: [] },
    ["You may not delete TrainJobs in the namespaces a and b."],
  ],
  ["what nobody says", [["a", null], ["b", null]], { suspend: ["ours", "theirs"], resume: ["waits"], delete: ["ours", "theirs", "waits"] }, []],
])("the user may do %s", (_, known, expected, sentences) => {
  const rights = new Map(known);
  for (const [action, names] of Object.entries(expected)) expect(permitted(action as Action, MIXED, rights).map(({ name }) => name)).toEqual(names);
  expect(refusals(MIXED, rights)).toEqual(sentences);
});

test("nothing is offered before a right is known", () => {
  expect(isUnknown("delete", MIXED, new Map())).toBe(true);
  expect(isUnknown("delete", MIXED, new Map([["a", MAY]]))).toBe(false);
});

test("one that is refused keeps no other from being done", async () => {
  const many = Array.from({ length: 9 }, (_, at) => row(`job-${at}`));
  const results = await doAll("delete", many, async (_, { name }) => {
    if (name === "job-3") throw new Error("you may not");
  });
  expect(results.map(({ row: { name }, problem }) => [name, problem])).toEqual(many.map(({ name }) => [name, name === "job-3" ? "you may not" : ""]));
});

test.each<[string[], string]>([
  [[""], "Suspended job-0"],
  [["", "", ""], "Suspended job-0, job-1 and job-2"],
  [["", "", "", ""], "Suspended 4 TrainJobs"],
  [["gone"], "job-0: gone"],
  [["", "gone", "gone"], "Suspended 1 of 3 TrainJobs. 2 refused: job-1: gone"],
  [["later", "gone"], "Suspended 0 of 2 TrainJobs. 2 refused, the first: job-0: later"],
])("results %j are one text", (problems, text) => {
  const results = problems.map((problem, at) => ({ row: row(`job-${at}`), problem }));
  expect(outcome("suspend", results)).toEqual({ text, tone: problems.some(Boolean) ? "bad" : "good" });
});
