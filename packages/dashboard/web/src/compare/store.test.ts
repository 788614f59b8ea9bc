import { expect, test } from "vitest";
import { type Comparison, COMPARED, NOTHING, beyond, compared, comparedPast, received } from "./store";

const BOTH: Comparison = { sides: [NOTHING, NOTHING], problem: "" };
const loss = { kind: "train", name: "loss", times: [1], steps: [1], values: [2] };

test.each([
  ["job", { source: 1, name: "b" }, { row: { source: 1, name: "b" } }],
  ["recipe", { source: 1, recipe: { image: "a" } }, { recipe: { image: "a" } }],
  ["metrics", { source: 1, isReset: true, hasMore: false, series: [loss] }, { curves: new Map([["train/loss", loss]]) }],
  ["trouble", { source: 1, text: "pods/log is forbidden" }, { trouble: "pods/log is forbidden" }],
  ["gone", { source: 1 }, { isGone: true }],
])("%s changes one side", (name, data, changes) => {
  expect(received(BOTH, { name, data }).sides).toEqual([NOTHING, { ...NOTHING, ...changes }]);
});

test("a problem concerns all", () => {
  expect(received(BOTH, { name: "problem", data: { text: "no" } })).toEqual({ ...BOTH, problem: "no" });
});

const many = (count: number) => Array.from({ length: count }, (_, index) => `a/${index}`);
const asQuery = (name: string, ids: readonly string[]) => ids.map((id) => `${name}=${id}`).join("&");

test.each([
  ["job=a/b&job=c/d&job=a/b", ["a/b", "c/d"], 0],
  ["job=a&job=/b&job=a/b/c", [], 3],
  [asQuery("job", many(COMPARED + 2)), many(COMPARED), 2],
])("?%s", (query, jobs, left) => {
  expect(compared(new URLSearchParams(query))).toEqual(jobs);
  expect(beyond(new URLSearchParams(query))).toBe(left);
});

test.each([
  ["past=a/b/u&past=a/b/v&past=a/b/u", ["a/b/u", "a/b/v"]],
  ["past=a/b&past=a/b/c/d&past=a//u", []],
  ["past=a/b/%25&past=a/b/%25E0%25A4%25A&past=../../cluster&past=a/b/u?x&past=a/b/c%2520d", ["a/b/c%20d"]],
  [`${asQuery("job", many(COMPARED - 1))}&past=a/b/u&past=a/b/v`, ["a/b/u"]],
])("?%s of the history", (query, past) => {
  expect(comparedPast(new URLSearchParams(query))).toEqual(past);
});
