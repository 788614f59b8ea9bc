import { expect, test } from "vitest";
import type { Cause, Job, Node } from "../model";
import { dependsOn, titleOf } from "./explanation";

const job = { uid: "1", state: "Pending", isSuspended: false, isDeleted: false, conditions: [] } as unknown as Job;
const node = { uid: "2", phase: "Pending", reason: "", restarts: 0 } as Node;

test.each([
  ["progress", { ...job, progress: 5, resourceVersion: "9" }, node, true],
  ["the state", { ...job, state: "Running" }, node, false],
  ["a condition", { ...job, conditions: [{ type: "Stalled", status: "True" }] }, node, false],
  ["the age of a pod", job, { ...node, created: "2026-01-01T00:00:00Z" }, true],
  ["the reason of a pod", job, { ...node, reason: "ImagePullBackOff" }, false],
])("an answer that is there holds when this has changed: %s", (_, changedJob, changedNode, holds) => {
  expect(dependsOn(changedJob, [changedNode]) === dependsOn(job, [node])).toBe(holds);
});

test.each([
  ["NoReport", "It makes no progress"],
  ["Unschedulable", "Why it waits"],
  ["StoppingPods", "Why it is stopping"],
  ["NodeNotReady", "Why it is stopping"],
])("what runs and does not get on does not wait: %s", (reason, title) => {
  expect(titleOf({ verdict: "waiting", causes: [{ reason } as Cause] })).toBe(title);
});
