import { expect, test } from "vitest";
import type { Capacity, Kind } from "../model";
import { closedOf } from "./capacity";
import { lead } from "./page";

const gpus = { resource: "nvidia.com/gpu" } as Kind;
const cpus = { resource: "cpu" } as Kind;

test.each<[Pick<Capacity, "nodes" | "closedNodes" | "kinds">, string]>([
  [{ nodes: 1, closedNodes: 0, kinds: [gpus, cpus] }, "1 node"],
  [{ nodes: 1, closedNodes: 1, kinds: [cpus] }, "1 node, which takes no pods, no GPUs"],
  [{ nodes: 12, closedNodes: 1, kinds: [gpus] }, "12 nodes, 1 of them takes no pods"],
  [{ nodes: 12, closedNodes: 3, kinds: [cpus] }, "12 nodes, 3 of them take no pods, none has GPUs"],
  [{ nodes: 0, closedNodes: 0, kinds: [] }, "0 nodes"],
])("%j is said as %j", (capacity, sentence) => {
  expect(lead(capacity)).toBe(sentence);
});

test.each([
  [8, 3, 5, 0],
  [8, 3, 0, 5],
  [8, 9, 0, 0],
  [8, null, null, 8],
])("of %s with %s requested and %s free, %s are on closed nodes", (total, requested, free, closed) => {
  expect(closedOf({ total, requested, free })).toBe(closed);
});
