import { expect, test } from "vitest";
import { ordered } from "./order";
import type { Metric } from "./results";
import type { Training } from "./training";
import { type CompareView, readView, writeView } from "./view";

const NOTHING: CompareView = { sort: "", isReversed: false, statistic: "last", kept: [], off: [], hasAllMetrics: false };

test.each<[Partial<CompareView>]>([
  [{}],
  [{ sort: "mt:loss", isReversed: true, statistic: "min" }],
  [{ kept: [{ key: "p:lr", low: 1e-4, high: 0.1 }, { key: 'p:"a', values: ["x, y", "not set"] }] }],
  [{ off: ["a/b", "a/c/u"], hasAllMetrics: true }],
])("the address holds %j, and leaves the rest", (changes) => {
  const view = { ...NOTHING, ...changes };
  const query = writeView(new URLSearchParams("job=a%2Fb&smooth=0.9&sort=-x&keep=1&off=z"), view);
  expect(readView(query)).toEqual(view);
  expect(query.getAll("job").concat(query.getAll("smooth"))).toEqual(["a/b", "0.9"]);
});

test.each(["keep=", "keep=[", "keep=[1,2,3]", 'keep=["a"]', 'keep=["a","b"]', 'keep=["a",[1]]', 'keep=["a",1,null]', "result=mean", "metrics=no"])("?%s says nothing", (query) => {
  expect(readView(new URLSearchParams(query))).toEqual(NOTHING);
});

test.each([
  ["", false, [0, 1, 2]],
  ["unknown", false, [0, 1, 2]],
  ["p:lr", false, [1, 0, 2]],
  ["p:lr", true, [0, 1, 2]],
  ["mt:loss", false, [2, 0, 1]],
  ["mt:loss", true, [0, 2, 1]],
  ["took", false, [2, 0, 1]],
  ["name", true, [2, 1, 0]],
] as const)("sorted by %s, reversed %s, what has no value is last", (sort, isReversed, expected) => {
  const trainings = [["a", 20], ["b", null], ["c", 10]].map(([label, seconds]) => ({ label, seconds }) as Training);
  const field = { key: "p:lr", title: "lr", values: ["1e-2", "1e-3", null] };
  const values = [3, NaN, 1].map((last) => ({ last, min: last, max: last }));
  const metric: Metric = { key: "mt:loss", title: "loss", isEval: false, better: "less", values };
  expect(ordered([0, 1, 2], trainings, [field], [metric], { sort, isReversed, statistic: "last" })).toEqual(expected);
});
