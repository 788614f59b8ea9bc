import { expect, test } from "vitest";
import { CLUSTER_WIDE, type Row, type Runtime } from "../model";
import { complete, missing, usage } from "./usage";

const row = (runtime: string, changes: Partial<Row> = {}) =>
  ({ namespace: "a", name: "demo", state: "Running", runtime, runtimeKind: CLUSTER_WIDE, nodes: null, devicesPerNode: null, ...changes }) as Row;
const torch = { kind: CLUSTER_WIDE, namespace: "", name: "torch", nodes: 2, devices: 8 } as Runtime;
const own = { kind: "TrainingRuntime", namespace: "a", name: "torch", nodes: 1, devices: 0 } as Runtime;

test.each([
  ["what the runtime says", row("torch"), [2, 16]],
  ["nodes of its own", row("torch", { nodes: 3 }), [3, 24]],
  ["GPUs of its own", row("torch", { devicesPerNode: 1 }), [2, 2]],
  ["no GPUs", row("torch", { devicesPerNode: 0 }), [2, 0]],
  ["a runtime of its namespace", row("torch", { runtimeKind: "TrainingRuntime" }), [1, 0]],
  ["a runtime of another namespace", row("torch", { runtimeKind: "TrainingRuntime", namespace: "b" }), [null, null]],
  ["a runtime that is not known", row("other", { nodes: 3 }), [3, null]],
])("nodes and GPUs of a TrainJob with %s", (_, of, [nodes, gpus]) => {
  expect(complete([of], [torch, own])).toEqual([{ ...of, nodes, gpus }]);
});

test("those that have ended or are suspended use a runtime, too", () => {
  const rows = [row("torch"), row("torch", { state: "Complete" }), row("torch", { isSuspended: true }), row("torch", { runtimeKind: "TrainingRuntime" })];
  expect([...usage(rows)]).toEqual([
    [`${CLUSTER_WIDE}//torch`, { all: 3, active: 1 }],
    ["TrainingRuntime/a/torch", { all: 1, active: 1 }],
  ]);
});

test("a runtime is missed only while a TrainJob needs it", () => {
  expect(missing([row("gone"), row("gone"), row("torch"), row("past", { state: "Failed" })], [torch])).toEqual([
    { kind: CLUSTER_WIDE, namespace: "", name: "gone" },
  ]);
});
