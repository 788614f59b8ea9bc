import { expect, test } from "vitest";
import { VALUE } from "./axes";
import { sweepOf, trialOf } from "./made";
import { countsOf, ordered } from "./order";

const TRIALS = [
  trialOf(1, 0.5, { parameters: ["1e-2", "sgd"] }),
  trialOf(2, null, { state: "Failed", parameters: ["5e-4", "adamw"], step: null }),
  trialOf(3, 0.3, { parameters: ["0.001", null] }),
  trialOf(4, 0.3, { state: "Running", ended: null, parameters: ["9e-3", "sgd"] }),
];

test.each([
  ["", false, [1, 2, 3, 4]],
  ["number", true, [4, 3, 2, 1]],
  [VALUE, false, [3, 4, 1, 2]],
  [VALUE, true, [1, 3, 4, 2]],
  ["p:lr", false, [2, 3, 4, 1]],
  ["p:optimizer", false, [2, 1, 4, 3]],
  ["state", false, [4, 1, 3, 2]],
  ["step", true, [1, 3, 4, 2]],
  ["took", false, [1, 2, 3, 4]],
  ["p:none", false, [1, 2, 3, 4]],
])("by %j, reversed: %j", (sort, isReversed, numbers) => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  expect(ordered(TRIALS, sweepOf(), { sort, isReversed }, now).map(({ number }) => number)).toEqual(numbers);
});

test("trials are counted by state", () => {
  expect(countsOf(TRIALS)).toEqual({ Running: 1, Succeeded: 2, Failed: 1, Pruned: 0 });
});
