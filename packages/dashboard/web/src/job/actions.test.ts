import { expect, test } from "vitest";
import { canScale, suspensions } from "./actions";

const RUNNING = { state: "Running", isDeleted: false, isSuspended: false, bounds: null };
const BOUNDS = { least: 1, most: 4 };

test.each([
  ["runs", {}, false],
  ["runs, elastic", { bounds: BOUNDS }, true],
  ["has ended, elastic", { bounds: BOUNDS, state: "Complete" }, false],
  ["is deleted, elastic", { bounds: BOUNDS, isDeleted: true }, false],
  ["is suspended", { isSuspended: true }, true],
])("the nodes of what %s", (_, changes, expected) => {
  expect(canScale({ ...RUNNING, ...changes })).toBe(expected);
});

const HELD = [{ type: "Pending", status: "True", reason: "JobSetSuspended" }];

test.each([
  ["runs", {}, ["suspend"]],
  ["is suspended", { isSuspended: true }, ["resume"]],
  ["waits in a queue or is inactive in it", { conditions: HELD }, ["suspend", "resume"]],
  ["was held", { conditions: [{ ...HELD[0]!, status: "False" }] }, ["suspend"]],
  ["has ended", { state: "Failed" }, []],
  ["is deleted", { isDeleted: true }, []],
])("what is offered for a training that %s", (_, changes, expected) => {
  expect(suspensions({ ...RUNNING, conditions: [], ...changes })).toEqual(expected);
});
