import { expect, test } from "vitest";
import { type Zoom, hasSample, isZoomed, wholeOf, zoomOf, zoomed } from "./zoom";

test.each([
  [{ min: 1, max: 9 }, [1, 5, 9], false],
  [{ min: 0.5, max: 1.5 }, [1], false],
  [{ min: 3, max: 9 }, [1, 5, 9], true],
  [{ min: 1, max: 4 }, [1, 5, 9], true],
  [{}, [], false],
  [{ min: 1, max: 2 }, [], false],
])("%j of %j is zoomed: %s", (scale, x, expected) => {
  expect(isZoomed(scale, x)).toBe(expected);
});

test.each([
  ["in", 0, 100, 25, 75],
  ["in", 20, 40, 25, 35],
  ["out", 25, 75, 0, 100],
  ["out", 0, 40, 0, 80],
  ["out", 10, 90, 0, 100],
  ["right", 0, 40, 10, 50],
  ["right", 55, 95, 60, 100],
  ["left", 40, 80, 30, 70],
  ["left", 5, 45, 0, 40],
  ["left", 0, 100, 0, 100],
  ["all", 5, 6, 0, 100],
  ["in", 50, 50.0001, 50, 50.0001],
] as [Zoom, number, number, number, number][])("%s from %d to %d shows %d to %d", (zoom, min, max, left, right) => {
  const next = zoomed({ min, max }, { min: 0, max: 100 }, zoom);
  expect([next.min.toFixed(4), next.max.toFixed(4)]).toEqual([left.toFixed(4), right.toFixed(4)]);
});

const plain = { ctrlKey: false, metaKey: false, altKey: false };

test.each([
  [{ ...plain, key: "+" }, "in"],
  [{ ...plain, key: "-" }, "out"],
  [{ ...plain, key: "ArrowRight" }, "right"],
  [{ ...plain, key: "0" }, "all"],
  [{ ...plain, key: "Escape" }, "all"],
  [{ ...plain, key: "+", ctrlKey: true }, undefined],
  [{ ...plain, key: "ArrowLeft", altKey: true }, undefined],
  [{ ...plain, key: "Tab" }, undefined],
  [{ ...plain, key: "toString" }, undefined],
])("the key %j", (event, zoom) => {
  expect(zoomOf(event)).toBe(zoom);
});

test.each([
  [[], null],
  [[3], null],
  [[3, 3], null],
  [[1, 2, 5], { min: 1, max: 5 }],
])("all of %j is %j", (x, whole) => {
  expect(wholeOf(x)).toEqual(whole);
});

test.each([
  [{ min: 2, max: 4 }, true],
  [{ min: 5, max: 9 }, true],
  [{ min: 6, max: 9 }, false],
  [{ min: 3.5, max: 4.5 }, false],
  [{ min: -2, max: 0 }, false],
])("a sample is in %j: %s", (range, expected) => {
  expect(hasSample([1, 2, 3, 5], range)).toBe(expected);
});
