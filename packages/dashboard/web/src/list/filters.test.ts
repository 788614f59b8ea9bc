import { expect, test } from "vitest";
import type { Listed } from "../model";
import { phases, read, select, write } from "./filters";

function row(name: string, changes: Partial<Listed> = {}): Listed {
  return {
    uid: name, namespace: "a", name, state: "Running", message: "", progress: null, remaining: null, remainingText: "",
    runtime: "torch", runtimeKind: "ClusterTrainingRuntime", nodes: 1, devicesPerNode: null, gpus: null, owner: "", created: "2026-01-01T00:00:00Z", ended: null, isSuspended: false, isDeleted: false, ...changes,
  };
}

const ROWS = [
  row("one", { progress: 10 }),
  row("two", { state: "Failed", namespace: "b", created: "2026-01-02T00:00:00Z", message: "exit code 3" }),
  row("four", { state: "Suspended", namespace: "b", created: "2025-01-01T00:00:00Z" }),
  row("five", { state: "Pending", created: "2024-01-01T00:00:00Z", runtime: "" }),
  row("three", { runtime: "jax", progress: 90, gpus: 8, owner: "Experiment sweep" }),
];

test.each([
  ["", ["two", "one", "three", "four", "five"]],
  ["state=failed", ["two"]],
  ["state=Failed", ["two"]],
  ["state=waiting", ["four", "five"]],
  ["state=Suspended", ["four"]],
  ["state=Pending", ["five"]],
  ["state=Running", ["one", "three"]],
  ["state=Nonsense", []],
  ["namespace=a&runtime=jax", ["three"]],
  ["q=CODE+exit", ["two"]],
  ["q=a/t", ["three"]],
  ["sort=name", ["five", "four", "one", "three", "two"]],
  ["sort=-progress", ["three", "one", "five", "four", "two"]],
  ["sort=-gpus", ["three", "five", "one", "four", "two"]],
  ["q=sweep", ["three"]],
  ["sort=nonsense", ["two", "one", "three", "four", "five"]],
])("?%s", (query, names) => {
  expect(select(ROWS, read(new URLSearchParams(query))).map((each) => each.name)).toEqual(names);
});

test.each(["/", "/?q=a+b&state=failed", "/?state=Suspended", "/?group=label%3Ateam", "/?sort=name", "/?namespace=a&runtime=jax&sort=-nodes"])("%s is read as it was written", (path) => {
  expect(write(read(new URLSearchParams(path.split("?")[1] ?? "")))).toBe(path);
});

test("each phase has its number of rows", () => {
  expect(phases(ROWS)).toEqual({ running: 2, waiting: 2, failed: 1, done: 0 });
});
