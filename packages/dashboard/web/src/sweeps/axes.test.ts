import { expect, test } from "vitest";
import { FIRST_AXES, VALUE, axesOf, firstAxes, parameterKey } from "./axes";
import { linesOf } from "./curves";
import { sortedBars } from "./importance";
import { sweepOf, trialOf } from "./made";
import { looks } from "./ranking";

const TRIALS = [
  trialOf(1, 0.5, { parameters: ["1e-4", "sgd"] }),
  trialOf(2, 0.4, { state: "Failed", parameters: ["1e-3", "adamw"] }),
  trialOf(3, 0.3, { parameters: ["1e-2", null] }),
];

test("axes have what the sweep searches, logarithmic where it does so, and the value at the end", () => {
  const [lr, optimizer, value] = axesOf(sweepOf(), TRIALS);
  expect([lr!.kind, lr!.places]).toEqual(["log", [0, expect.closeTo(0.5), 1]]);
  expect([optimizer!.ticks, optimizer!.places]).toEqual([
    [
      ["sgd", 0],
      ["adamw", 1],
    ],
    [0, 1, null].map((each) => each ?? expect.anything()),
  ]);
  expect([value!.key, value!.places]).toEqual([VALUE, [1, null, 0]]);
});

test("a linear axis has all that can be, whatever was tried", () => {
  const sweep = sweepOf({ parameters: [{ name: "layers", kind: "uniform", isInteger: true, low: 0, high: 8, choices: [] }] });
  expect(axesOf(sweep, [trialOf(1, 0.5, { parameters: ["4"] })])[0]!.places).toEqual([0.5]);
});

test.each([
  [{ kind: "logUniform", low: 0, high: 1 }, "no logarithm"],
  [{ kind: "", low: null, high: null }, "an unknown space"],
  [{ kind: "uniform", low: null, high: 1 }, "no bounds"],
] as const)("an axis of %j has places", (space, _) => {
  const sweep = sweepOf({ parameters: [{ name: "x", isInteger: false, choices: [], ...space }] });
  const [axis] = axesOf(sweep, [trialOf(1, 0.5, { parameters: ["0.25"] }), trialOf(2, 0.5, { parameters: ["0.75"] })]);
  for (const place of axis!.places) expect(place).toSatisfy((each: number) => each >= 0 && each <= 1);
});

test("without a value there is no axis of values", () => {
  expect(axesOf(sweepOf(), [trialOf(1, null)]).map(({ key }) => key)).not.toContain(VALUE);
});

test("of many parameters those that matter most are drawn at first", () => {
  const [sample] = sweepOf().parameters;
  const parameters = Array.from({ length: 30 }, (_, index) => ({ ...sample!, name: `p${index}` }));
  const first = firstAxes(parameters, { method: "share", least: 5, of: { p29: 0.9, p20: 0.1 } });
  expect([first.size, first.has(parameterKey("p29")), first.has(parameterKey("p20")), first.has(VALUE)]).toEqual([FIRST_AXES + 1, true, true, true]);
  expect(firstAxes(parameters, null).has(parameterKey("p0"))).toBe(true);
});

test("curves of pruned trials are faint behind the others, and the best is in front", () => {
  const points: [number, number][] = [
    [1, 0.9],
    [2, 0.5],
  ];
  const trials = [trialOf(1, 0.5, { points }), trialOf(2, 0.4, { points, state: "Pruned" }), trialOf(3, 0.6, { points }), trialOf(4, 0.6, { points: [[1, null]] })];
  const lines = linesOf("val_loss", trials, looks(trials, "Minimize"), trials[0]!);
  expect(lines.map(({ label, isFaint, color }) => [label, isFaint, color])).toEqual([
    ["Trial 2", true, "--trial-pruned"],
    ["Trial 3", false, "--shade-5"],
    ["Trial 1", false, "--shade-0"],
  ]);
});

test("an axis of many choices names as many as can be read", () => {
  const choices = Array.from({ length: 30 }, (_, index) => `choice-${index}`);
  const sweep = sweepOf({ parameters: [{ name: "x", kind: "categorical", isInteger: false, low: null, high: null, choices }] });
  const [axis] = axesOf(sweep, [trialOf(1, 0.5, { parameters: ["choice-29"] }), trialOf(2, 0.5, { parameters: ["choice-28"] })]);
  expect([axis!.ticks.length, axis!.ticks[1]]).toEqual([15, ["choice-27", 2 / 29]]);
  expect(axis!.places).toEqual([0, 1 / 29]);
});

test("a parameter may be called like what all objects have", () => {
  const parameters = [{ ...sweepOf().parameters[0]!, name: "constructor" }, { ...sweepOf().parameters[0]!, name: "lr" }];
  expect(sortedBars({ of: { lr: 0.2 } }, parameters)).toEqual([["lr", 0.2]]);
});

test("bars are those of the parameters of the sweep, the most important first", () => {
  expect(sortedBars({ of: { lr: 0.2, optimizer: 0.7, other: 1 } }, sweepOf().parameters)).toEqual([
    ["optimizer", 0.7],
    ["lr", 0.2],
  ]);
});
