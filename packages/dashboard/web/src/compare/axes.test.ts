import { expect, test } from "vitest";
import { type ParallelAxis, axesOf, keptText, ticksOf } from "./axes";
import type { Metric } from "./results";

function axis(values: (string | null)[]): ParallelAxis {
  return axesOf([{ key: "p:x", title: "x", values }], [], "last")[0]!;
}

const ticks = (of: ParallelAxis) => of.ticks.map(([text, at]) => `${text} ${at.toFixed(2)}`);

test.each([
  ["few numbers", ["1", "2", "4"], "", ["1 0.00", "2 0.33", "4 1.00"]],
  ["a wide range", ["1e-4", "1e-3", "1e-2"], "log", ["1e-4 0.00", "0.001 0.50", "0.01 1.00"]],
  ["texts", ["sgd", "adam", null], "", ["not set 0.00", "sgd 0.50", "adam 1.00"]],
  ["numbers of which one is missing", ["0.1", null, "0"], "", ["0 0.00", "0.1 1.00"]],
  ["one number, or none", ["10", null], "", ["not set 0.00", "10 1.00"]],
  ["numbers and a text", ["1", "auto"], "", ["auto 0.00", "1 1.00"]],
])("the axis of %s", (_, values, kind, expected) => {
  expect(axis(values).kind).toBe(kind);
  expect(ticks(axis(values))).toEqual(expected);
});

test("a value of its own for each training says nothing, but numbers do", () => {
  const each = (made: (index: number) => string) => axesOf([{ key: "p:x", title: "x", values: Array.from({ length: 30 }, (_, index) => made(index)) }], [], "last");
  expect(each((index) => `/out/${index}`)).toEqual([]);
  expect(each(String)).toHaveLength(1);
});

test("a part of numbers keeps those within, also where the scale is logarithmic", () => {
  const of = axis(["1e-4", "1e-3", "1e-2"]);
  const kept = of.kept(0.25, 1);
  expect([0, 1, 2].map((index) => of.fits(index, kept))).toEqual([false, true, true]);
  expect(of.span(kept)!.map((at) => Number(at.toFixed(4)))).toEqual([0.25, 1]);
  expect(keptText(kept)).toBe("3.162e-4 to 0.01");
  expect([0, 1, 2].map((index) => of.fits(index, of.kept(0, 0.6)))).toEqual([true, true, false]);
});

test("a part of texts keeps these, whatever comes between them later", () => {
  const of = axis(["sgd", "adam", null]);
  const kept = of.kept(0.4, 1);
  expect(kept).toEqual({ key: "p:x", values: ["sgd", "adam"] });
  expect([0, 1, 2].map((index) => of.fits(index, kept))).toEqual([true, true, false]);
  expect(of.span({ key: "p:x", values: ["gone"] })).toBeNull();
  expect(keptText(kept)).toBe("sgd, adam");
});

test("a result has no place where it is missing, and an axis only where it differs", () => {
  const metric = (numbers: (number | null)[]): Metric => ({
    key: "me:loss", title: "loss", isEval: true, better: "less", values: numbers.map((last) => (last === null ? null : { last, min: last, max: last })),
  });
  const [of] = axesOf([], [metric([1, null, 3]), metric([1, 1])], "last");
  expect([of!.kind, of!.places]).toEqual(["evaluation", [0, null, 1]]);
  expect(of!.fits(1, of!.kept(0, 1))).toBe(false);
  expect(axesOf([], [metric([1, 1])], "last")).toEqual([]);
});

test.each([
  [0, 1, false, [0, 0.25, 0.5, 0.75, 1]],
  [0.31, 0.36, false, [0.32, 0.34, 0.36]],
  [1e-4, 1e-1, true, [1e-4, 1e-3, 1e-2, 1e-1]],
  [2, 4, true, [2, 4]],
  [1e16, 1e16 + 2, false, [1e16, 1e16 + 2]],
  [0, 5e-324, false, [0, 5e-324]],
])("ticks from %s to %s", (least, greatest, isLog, expected) => {
  const found = ticksOf(least, greatest, isLog).map((each) => Number(each.toPrecision(6)));
  expect(found.length).toBeLessThan(12);
  if (least < 1e15) expect(found).toEqual(expected.map((each) => Number(each.toPrecision(6))));
});
