import { expect, test } from "vitest";
import { line } from "./sparkline";

test.each([
  ["one value", [5], "0.0,10.0"],
  ["a constant", [5, 5], "0.0,10.0 64.0,10.0"],
  ["the least value at the bottom", [2, 1, 3], "0.0,10.0 32.0,19.0 64.0,1.0"],
])("%s", (_, values, points) => {
  expect(line(values)).toBe(points);
});
