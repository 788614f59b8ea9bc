import type uPlot from "uplot";
import { expect, test } from "vitest";
import type { Points } from "../model";
import type { Line } from "./curves";
import { nearest, pointed, position, raise } from "./pointer";

const line = (label: string, kind: Points["kind"] = "train"): Line => ({ id: label, label, tone: 0, points: { kind, name: "loss", times: [], steps: [], hasSteps: true, values: [] } });

/** A chart over two steps whose values are drawn at their own heights. */
function plot(data: (number | null)[][], idx: number | null, top = 0): uPlot {
  const series = data.map(() => ({ alpha: 1, width: 1 }));
  return { data, series, cursor: { idx, top }, valToPos: (value: number) => value, redraw: () => undefined } as unknown as uPlot;
}

const FEW = plot([[10, 20], [1, 2], [3, null]], 1);
const MANY = plot([[10, 20], [1, 2], [3, null], [5, 6], [7, 8], [9, 10]], 1, 7.5);
const LINES = ["a", "b", "c", "d", "e"].map((label) => line(label));

test.each([
  ["nothing is pointed at", plot([[10], [1]], null), [line("a")], "", ""],
  ["few lines are all said", FEW, [line("a"), line("b", "eval")], "", "step 20: a 2"],
  ["of many the one that is pointed at, also between its samples", MANY, LINES, "b", "step 20: b 3"],
  ["of many none", MANY, LINES, "", "step 20"],
])("%s", (_, of, lines, label, text) => {
  expect(pointed(of, lines, "step", false, label)).toBe(text);
});

test("an epoch is named as one", () => {
  expect(position(3, "epoch")).toBe("epoch 3");
});

test("the nearest line is that of a training, and far away there is none", () => {
  expect(nearest(MANY, LINES, false)).toBe("d");
  expect(nearest(plot([[10], [1]], 0, 200), [line("a")], false)).toBe("");
  expect(nearest(plot([[10], [1]], null), [line("a")], false)).toBe("");
});

test("one training stands out with its raw line, and the others stand back", () => {
  const of = plot([[10], [1], [1], [2], [2]], 0);
  raise(of, [line("a"), line("b")], "b", true);
  expect(of.series.slice(1).map(({ alpha }) => alpha)).toEqual([0, 0.14, 0.3, 1]);
  raise(of, [line("a"), line("b")], "", true);
  expect(of.series.slice(1).map(({ alpha, width }) => [alpha, width])).toEqual([[0.3, 1], [1, 1.5], [0.3, 1], [1, 1.5]]);
});
