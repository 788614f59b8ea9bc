import { expect, test } from "vitest";
import { CLUSTER_WIDE } from "../model";
import { QUEUE, changes, fieldOf, fieldsOf, withGpus, withLabels, withRuntime, withValue, withVariables, wordsOf } from "./fields";
import type { JsonObject } from "./rewrite";

const JOB = (trainer: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  metadata: { name: "a", namespace: "b", ...metadata },
  spec: { runtimeRef: { name: "torch" }, ...(Object.keys(trainer).length > 0 ? { trainer } : {}) },
});

test("a TrainJob that leaves all to its runtime has no field that nobody chose", () => {
  expect(fieldsOf(JOB())).toEqual({
    name: "a",
    namespace: "b",
    runtime: { name: "torch", kind: CLUSTER_WIDE },
    nodes: undefined,
    gpus: undefined,
    image: undefined,
    command: undefined,
    args: undefined,
    env: [],
    queue: undefined,
    checkpoints: undefined,
    labels: [],
  });
});

test("a field that is set and cleared again leaves nothing behind", () => {
  const set = withGpus(JOB(), 2);
  expect(set).toEqual(JOB({ resourcesPerNode: { limits: { "nvidia.com/gpu": 2 } } }));
  expect(withGpus(set, undefined)).toEqual(JOB());
  expect(withVariables(withVariables(JOB(), [{ name: "A", value: "", origin: "" }]), [])).toEqual(JOB());
  expect(withValue(withValue(JOB(), ["spec", "trainer", "numNodes"], 3), ["spec", "trainer", "numNodes"], undefined)).toEqual(JOB());
  expect(withLabels(withLabels(JOB(), [["a", "b"]]), [])).toEqual(JOB());
});

test.each<[string, JsonObject, JsonObject]>([
  ["limits alone", { limits: { "amd.com/gpu": 1, cpu: 2 } }, { limits: { "amd.com/gpu": 4, cpu: 2 } }],
  ["requests alone", { requests: { "nvidia.com/gpu": 1 } }, { requests: { "nvidia.com/gpu": 4 } }],
  ["both", { limits: { "nvidia.com/gpu": 1 }, requests: { "nvidia.com/gpu": 1 } }, { limits: { "nvidia.com/gpu": 4 }, requests: { "nvidia.com/gpu": 4 } }],
  ["other resources", { requests: { cpu: 2 } }, { requests: { cpu: 2 }, limits: { "nvidia.com/gpu": 4 } }],
])("GPUs where they stand: %s", (_, before, after) => {
  const changed = withGpus(JOB({ resourcesPerNode: before }), 4);
  expect(changed).toEqual(JOB({ resourcesPerNode: after }));
  expect(fieldsOf(changed).gpus).toBe(4);
});

test("the kind of a runtime is only written where it has to be", () => {
  const own = withRuntime(JOB(), { name: "mine", kind: "TrainingRuntime" });
  expect(own.spec).toEqual({ runtimeRef: { name: "mine", kind: "TrainingRuntime" } });
  expect(withRuntime(own, { name: "torch", kind: CLUSTER_WIDE })).toEqual(JOB());
});

test("a variable keeps what the form does not show of it", () => {
  const env = [
    { name: "A", value: "1" },
    { name: "T", valueFrom: { secretKeyRef: { name: "hub", key: "token" } } },
  ];
  const shown = fieldsOf(JOB({ env })).env;
  expect(shown.map(({ origin }) => origin)).toEqual(["", "token of the Secret hub"]);
  const renamed = shown.map((each) => ({ ...each, name: `${each.name}2` }));
  expect(fieldsOf(withVariables(JOB({ env }), renamed)).env.map(({ name, origin }) => [name, origin])).toEqual([
    ["A2", ""],
    ["T2", "token of the Secret hub"],
  ]);
  expect(withVariables(JOB({ env }), shown.slice(1))).toEqual(JOB({ env: env.slice(1) }));
});

test("a variable that is typed does not take what another one has of the same name on the way", () => {
  const env = [{ name: "HF_TOKEN", valueFrom: { secretKeyRef: { name: "hub", key: "token" } } }, { name: "A", value: "1" }];
  let job = JOB({ env });
  for (const name of ["", "HF_TOKE", "HF_TOKEN", "HF_TOKEN_PATH"]) {
    job = withVariables(job, [...fieldsOf(job).env.slice(0, 2), { name, value: "", origin: "" }]);
  }
  job = withVariables(job, fieldsOf(job).env.map((each, index) => (index === 2 ? { ...each, value: "/t" } : each)));
  expect(job).toEqual(JOB({ env: [...env, { name: "HF_TOKEN_PATH", value: "/t" }] }));
  const renamed = withVariables(job, fieldsOf(job).env.map((each, index) => (index === 1 ? { ...each, name: "HF_TOKEN" } : each)));
  expect(fieldsOf(renamed).env.map(({ name, value, origin }) => [name, value || origin])).toEqual([
    ["HF_TOKEN", "token of the Secret hub"],
    ["HF_TOKEN", "1"],
    ["HF_TOKEN_PATH", "/t"],
  ]);
});

test("the queue is a label with a field of its own", () => {
  const job = JOB({}, { labels: { [QUEUE]: "gpu", team: "a" } });
  expect([fieldsOf(job).queue, fieldsOf(job).labels]).toEqual(["gpu", [["team", "a"]]]);
  expect(withLabels(job, [])).toEqual(JOB({}, { labels: { [QUEUE]: "gpu" } }));
});

test.each([
  ["spec.trainer.numNodes", "nodes"],
  ["spec.trainer.env[3].name", "env"],
  ["spec.trainer.envFrom", undefined],
  ["spec.runtimeRef", "runtime"],
  ["spec.trainer.resourcesPerNode.limits[nvidia.com/gpu]", "gpus"],
  [`metadata.labels[${QUEUE}]`, "queue"],
  ["metadata.annotations[trainer.kubeflow.org/checkpoints]", "checkpoints"],
  ["metadata.labels", "labels"],
  ["spec.podTemplateOverrides[0]", undefined],
  ["", undefined],
])("an error at %s is shown at %s", (path, field) => {
  expect(fieldOf(path)).toBe(field);
});

test.each([
  [undefined, []],
  [["a", "b"], ["a", "b"]],
  [["a", 1], null],
  ["a", null],
])("the words of %j", (value, words) => {
  expect(wordsOf(value)).toEqual(words);
});

test("what differs from the original is known", () => {
  const original = fieldsOf(JOB({ numNodes: 1 }));
  expect([...changes(original, fieldsOf(JOB({ numNodes: 2, image: "x" })))]).toEqual(["nodes", "image"]);
});
