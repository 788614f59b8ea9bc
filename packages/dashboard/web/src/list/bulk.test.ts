import { expect, test } from "vitest";
import type { Row } from "../model";
import { type Action, affected, doAll } from "./bulk";

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

test("one that is refused keeps no other from being done", async () => {
  const results: [string, string][] = [];
  const many = Array.from({ length: 9 }, (_, at) => row(`job-${at}`));
  await doAll("delete", many, ({ row: { name }, problem }) => results.push([name, problem]), async (_, { name }) => {
    if (name === "job-3") throw new Error("you may not");
  });
  expect(results.sort()).toEqual(many.map(({ name }) => [name, name === "job-3" ? "you may not" : ""]));
});
