import { expect, test } from "vitest";
import { sweepOf, trialOf } from "./made";
import { bestOf, canBeOverTime, looks, progression, ranked, secondsOf } from "./ranking";

const TRIALS = [
  trialOf(1, 0.5),
  trialOf(2, 0.9, { state: "Pruned" }),
  trialOf(3, 0.3),
  trialOf(4, null, { state: "Failed" }),
  trialOf(5, 0.4),
  trialOf(6, 0.1, { state: "Running", ended: null }),
];

test.each([
  ["Minimize", [3, 5, 1]],
  ["Maximize", [1, 5, 3]],
] as const)("what is best of %s", (direction, numbers) => {
  expect(ranked(TRIALS, direction).map(({ number }) => number)).toEqual(numbers);
});

test("equal values are in the order of their numbers, and have colours of their own", () => {
  const equal = [trialOf(2, 1), trialOf(1, 1)];
  expect(ranked(equal, "Maximize").map(({ number }) => number)).toEqual([1, 2]);
  expect([...looks(equal, "Maximize").values()]).toEqual(["shade-9", "shade-0"]);
});

test("a trial looks as its rank or its state says, however bad one of them is", () => {
  const found = looks([...TRIALS, trialOf(7, 1e30)], "Minimize");
  expect([1, 2, 3, 4, 6, 7].map((number) => found.get(number))).toEqual(["shade-6", "trial-pruned", "shade-0", "trial-failed", "trial-running", "shade-9"]);
});

test("the only trial is the best one", () => {
  expect(looks([trialOf(1, 3)], "Minimize").get(1)).toBe("shade-0");
});

test("the best so far changes with each trial that is better, and pruned ones are none of these", () => {
  const { marks, best, over } = progression([...TRIALS, trialOf(7, 0.35)], sweepOf(), "time");
  expect(over).toBe("time");
  expect(best).toEqual([
    [60, 0.5],
    [180, 0.3],
  ]);
  expect(marks.map(({ x, y }) => [x, y])).toEqual([
    [60, 0.5],
    [120, 0.9],
    [180, 0.3],
    [240, null],
    [300, 0.4],
    [420, 0.35],
  ]);
});

test("it goes by number where it is not known when some trial has ended", () => {
  const trials = [...TRIALS, trialOf(7, 0.2, { ended: null, isThere: false })];
  expect(canBeOverTime(trials, sweepOf())).toBe(false);
  expect(progression(trials, sweepOf(), "time")).toMatchObject({ over: "number", best: [[1, 0.5], [3, 0.3], [7, 0.2]] });
  expect(canBeOverTime([], sweepOf())).toBe(false);
});

test("the best is what the sweep says, else what the values say", () => {
  const named = { trainJob: "digits-trial-5", number: 5, value: "0.4", parameters: [] };
  expect(bestOf({ best: named, direction: "Minimize" }, TRIALS)?.number).toBe(5);
  expect(bestOf({ best: null, direction: "Minimize" }, TRIALS)?.number).toBe(3);
  expect(bestOf({ best: null, direction: "Minimize" }, [])).toBeNull();
});

test.each([
  [{}, 60],
  [{ ended: null, state: "Running" }, 3600],
  [{ ended: null, state: "Pruned" }, null],
  [{ started: null }, null],
] as const)("how long a trial with %j ran", (more, seconds) => {
  expect(secondsOf(trialOf(1, 0.5, more), Date.parse("2026-01-01T01:00:00Z"))).toBe(seconds);
});
