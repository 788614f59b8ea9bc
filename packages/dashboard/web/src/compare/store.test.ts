import { expect, test } from "vitest";
import { type Comparison, NOTHING, compared, comparedPast, received } from "./store";

const BOTH: Comparison = { sides: [NOTHING, NOTHING], problem: "" };
const loss = { kind: "train", name: "loss", times: [1], steps: [1], values: [2] };

test.each([
  ["job", { source: 1, name: "b" }, { row: { source: 1, name: "b" } }],
  ["metrics", { source: 1, isReset: true, hasMore: false, series: [loss] }, { curves: new Map([["train/loss", loss]]) }],
  ["trouble", { source: 1, text: "pods/log is forbidden" }, { trouble: "pods/log is forbidden" }],
  ["gone", { source: 1 }, { isGone: true }],
])("%s changes one side", (name, data, changes) => {
  expect(received(BOTH, { name, data }).sides).toEqual([NOTHING, { ...NOTHING, ...changes }]);
});

test("a problem concerns all", () => {
  expect(received(BOTH, { name: "problem", data: { text: "no" } })).toEqual({ ...BOTH, problem: "no" });
});

test.each([
  ["job=a/b&job=c/d&job=a/b", ["a/b", "c/d"]],
  ["job=a&job=/b&job=a/b/c", []],
  [Array.from({ length: 9 }, (_, index) => `job=a/${index}`).join("&"), ["a/0", "a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7"]],
])("?%s", (query, jobs) => {
  expect(compared(new URLSearchParams(query))).toEqual(jobs);
});

test.each([
  ["past=a/b/u&past=a/b/v&past=a/b/u", ["a/b/u", "a/b/v"]],
  ["past=a/b&past=a/b/c/d&past=a//u", []],
  [`${Array.from({ length: 7 }, (_, index) => `job=a/${index}`).join("&")}&past=a/b/u&past=a/b/v`, ["a/b/u"]],
])("?%s of the history", (query, past) => {
  expect(comparedPast(new URLSearchParams(query))).toEqual(past);
});
