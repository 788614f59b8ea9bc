import { expect, test } from "vitest";
import type { Listed, Workload } from "../model";
import { sentence, unexplained } from "./reasons";
import { isWaiting, summary, waiting } from "./waiting";

function job(name: string, state: string, changes: Partial<Listed> = {}): Listed {
  return { uid: name, namespace: "a", name, state, message: `${name} is ${state}`, gpus: 8, created: "2026-01-01T00:00:00Z", since: null, isDeleted: false, ...changes } as Listed;
}

function workload(training: string, changes: Partial<Workload> = {}): Workload {
  return { uid: `w-${training}`, name: "w", namespace: "a", queue: "research", place: 3, owner: "TrainJob b", training, gpus: 16, created: "2026-01-01T00:00:02Z", message: "no quota", ...changes };
}

test.each([
  ["Suspended", false, true],
  ["Pending", false, true],
  ["Blocked", false, true],
  ["Pending", true, false],
  ["Running", false, false],
  ["Complete", false, false],
])("%s, deleted %s, waits %s", (state, isDeleted, waits) => {
  expect(isWaiting({ state, isDeleted })).toBe(waits);
});

test("what waits has its reason, its place in its queue, and comes by how long it waits", () => {
  const jobs = [job("new", "Pending", { since: "2026-01-01T00:00:03Z" }), job("old", "Blocked"), job("queued", "Suspended"), job("runs", "Running"), job("paused", "Suspended")];
  const found = waiting(jobs, [workload("queued"), workload("", { uid: "other", owner: "Job b", created: "2026-01-02T00:00:00Z" })]);
  expect(found.map(({ name, state, why, queue, place, gpus }) => [name, state, why, queue, place, gpus])).toEqual([
    ["old", "Blocked", "old is Blocked", "", null, 8],
    ["queued", "Queued", "no quota", "research", 3, 16],
    ["new", "Pending", "new is Pending", "", null, 8],
    ["Job b", "Queued", "no quota", "research", 3, 16],
    ["paused", "Suspended", "paused is Suspended", "", null, 8],
  ]);
  expect(found.map(({ job: each }) => each?.name ?? null)).toEqual(["old", "queued", "new", null, "paused"]);
});

test("a Workload of a TrainJob that is not shown waits as others do, and one of another namespace is another", () => {
  expect(waiting([], [workload("gone")]).map(({ name, job: each }) => [name, each])).toEqual([["TrainJob b", null]]);
  expect(waiting([job("queued", "Suspended")], [workload("queued", { namespace: "b" })])).toHaveLength(2);
});

test.each([
  [[], ""],
  [[job("one", "Pending"), job("two", "Suspended")], "1 waits, for 8 GPUs; 1 suspended"],
  [[job("two", "Suspended")], "1 suspended"],
  [[job("one", "Pending"), job("two", "Pending")], "2 wait, for 16 GPUs together"],
  [[job("one", "Pending", { gpus: 1 })], "1 waits, for 1 GPU"],
  [[job("one", "Pending", { gpus: null }), job("two", "Pending", { gpus: 0 })], "2 wait"],
])("all of it in words", (jobs, words) => {
  expect(summary(waiting(jobs, []))).toBe(words);
});

test("a reason is asked for once, and again when the TrainJob says something else or time has passed", () => {
  const pending = job("one", "Pending");
  const version = JSON.stringify(["Pending", "one is Pending", undefined]);
  const known = new Map([["one", { version, text: "", time: 0 }]]);
  expect(unexplained([pending], new Map(), 1)).toEqual([pending]);
  expect(unexplained([pending], known, 1)).toEqual([]);
  expect(unexplained([pending], known, 100_000)).toEqual([pending]);
  expect(unexplained([job("one", "Blocked")], known, 1)).toHaveLength(1);
});

test.each([
  [["no node has nvidia.com/gpu"], [], "no node has nvidia.com/gpu"],
  [[], ["it has started just now"], "it has started just now"],
  [[], [], ""],
])("of an explanation with causes %j and notes %j the sentence is %j", (causes, notes, text) => {
  const made = causes.map((message) => ({ message, reason: "", about: "", remedy: "", command: "", details: [], commands: [] }));
  expect(sentence({ causes: made, notes })).toBe(text);
});
