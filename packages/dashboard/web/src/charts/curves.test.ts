import { expect, test } from "vitest";
import type { Points } from "../model";
import { type Line, axisOf, byMetric, canBeLogarithmic, choiceOf, drawable, extent, horizontal, smooth, tables } from "./curves";

const points = (steps: number[], values: number[] = steps): Points => ({
  kind: "train", name: "loss", times: steps.map((_, index) => 100 + index), steps, hasSteps: true, values,
});
const epochs = (counts: number[]): Points => ({ ...points(counts), hasSteps: false });
const line = (of: Points, id = "a"): Line => ({ id, label: id, points: of, tone: 0 });

test("training and evaluation of one name share a chart", () => {
  const lines = [line(points([1])), line({ ...points([1]), name: "accuracy" }), line({ ...points([1]), kind: "eval" })];
  expect(byMetric(lines).map(([name, of]) => [name, of.length])).toEqual([["loss", 2], ["accuracy", 1]]);
});

test.each([
  ["steps", [points([1, 2, 2])], "step", false, "step"],
  ["no steps", [points([-1, -1])], "step", false, "time"],
  ["neither steps nor epochs", [epochs([-1, -1])], "step", false, "time"],
  ["epochs", [epochs([1, 2]), epochs([2])], "step", true, "epoch"],
  ["epochs with several samples", [epochs([1, 1, 2])], "step", false, "time"],
  ["steps and epochs", [points([1, 2]), epochs([1, 2])], "step", true, "elapsed"],
  ["wanted time of epochs", [epochs([1, 2])], "time", false, "time"],
  ["one without steps", [points([1, 2]), points([-1])], "step", true, "elapsed"],
  ["steps that go back", [points([1, 2, 1])], "step", false, "time"],
  ["wanted time", [points([1, 2])], "time", false, "time"],
  ["wanted time of several", [points([1, 2])], "time", true, "elapsed"],
] as const)("the axis of %s", (_, of, axis, isCompared, expected) => {
  expect(axisOf(of.map((each) => line(each)), { axis }, isCompared)).toBe(expected);
});

test.each([
  ["steps", [points([-1]), points([1, 2])], "step"],
  ["steps before epochs", [epochs([1]), points([1, 2])], "step"],
  ["epochs", [points([-1]), epochs([1, 2])], "epoch"],
  ["nothing", [points([-1, -1]), epochs([-1])], null],
] as const)("beside time there is to choose: %s", (_, of, expected) => {
  expect(choiceOf(of.map((each) => line(each)))).toBe(expected);
});

test("time of several TrainJobs begins with their first samples", () => {
  expect(horizontal(points([5, 6, 7]), "elapsed")).toEqual([0, 1, 2]);
  expect(horizontal(points([]), "elapsed")).toEqual([]);
});

test("smoothing starts at the first value, and survives what is no number", () => {
  expect(smooth([4, 4, 4], 0.9).map((value) => Number(value.toFixed(9)))).toEqual([4, 4, 4]);
  expect(smooth([0, 10], 0.5)).toEqual([0, 10 / 1.5]);
  expect(smooth([1, NaN, 1], 0.5)).toEqual([1, NaN, 1]);
});

test.each([
  [false, [-1, 0, 2, null, null]],
  [true, [null, null, 2, null, null]],
])("what can be drawn, logarithmic %s", (isLog, expected) => {
  expect(drawable([-1, 0, 2, NaN, Infinity], isLog)).toEqual(expected);
});

test.each([
  [[-1, 0], false],
  [[-1, 0.5], true],
])("%s can be drawn on a logarithmic scale: %s", (values, expected) => {
  expect(canBeLogarithmic([line(points([1, 2], values))])).toBe(expected);
});

test("the extent leaves out what is no number", () => {
  expect(extent([NaN, 3, -1, Infinity])).toEqual({ least: -1, greatest: 3 });
  expect(extent([NaN])).toEqual({ least: undefined, greatest: undefined });
});

test("epochs are what lines are drawn over", () => {
  expect(horizontal(epochs([1, 2]), "epoch")).toEqual([1, 2]);
});

test("a table has the values, and the smoothed ones behind them", () => {
  expect(tables([line(points([1, 2], [0, 10]))], "step", { isLog: false, smoothing: 0.5 })).toEqual([[[1, 2], [0, 10], [0, 10 / 1.5]]]);
  expect(tables([line(points([1, 2], [0, 10]))], "step", { isLog: true, smoothing: 0 })).toEqual([[[1, 2], [null, 10]]]);
});
