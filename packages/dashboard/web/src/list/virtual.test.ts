import { expect, test } from "vitest";
import { part } from "./virtual";

test.each([
  [100, 800, 40, 5000, { first: 0, last: 26 }],
  [-4000, 800, 40, 5000, { first: 92, last: 128 }],
  [-199_500, 800, 40, 5000, { first: 4979, last: 5000 }],
  [100, 800, 40, 0, { first: 0, last: 0 }],
  [-10_000, 800, 40, 3, { first: 3, last: 3 }],
])("top %d, screen %d, rows %d high, %d of them", (top, screen, height, count, window) => {
  expect(part(top, screen, height, count)).toEqual(window);
});
