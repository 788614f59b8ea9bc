import { expect, test } from "vitest";
import { CLUSTER_WIDE, type Runtime } from "../model";
import { choices, summary } from "./picker";

const runtime = (name: string, more: Partial<Runtime> = {}): Runtime => ({
  name,
  namespace: "",
  kind: CLUSTER_WIDE,
  framework: "torch",
  support: "",
  nodes: 1,
  image: "torch:2",
  devices: 0,
  description: "",
  created: null,
  ...more,
});
const own = (name: string, namespace: string) => runtime(name, { namespace, kind: "TrainingRuntime" });
const ALL = [
  runtime("old", { support: "deprecated" }),
  runtime("torch"),
  runtime("jax", { framework: "jax", image: "jax:1", description: "For TPUs." }),
  own("ours", "team"),
  own("theirs", "other"),
];

test.each([
  ["", "team", ["torch", "jax", "ours", "old"]],
  ["", "", ["torch", "jax", "old"]],
  ["TPU", "team", ["jax"]],
  ["torch 2", "team", ["torch", "ours", "old"]],
  ["none", "team", []],
])("%j in %j finds %j", (text, namespace, names) => {
  expect(choices(ALL, namespace, text).map(({ name }) => name)).toEqual(names);
});

test.each([
  [runtime("a"), "torch · 1 node · no GPUs"],
  [runtime("a", { framework: "", nodes: 2, devices: 8 }), "2 nodes · 8 GPUs per node"],
  [runtime("a", { devices: 1 }), "torch · 1 node · 1 GPU per node"],
])("a runtime in a few words", (of, text) => {
  expect(summary(of)).toBe(text);
});
