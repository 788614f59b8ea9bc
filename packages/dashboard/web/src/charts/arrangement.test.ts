import { expect, test } from "vitest";
import { type Named, arranged, csvOf, csvText, fileName, separated } from "./arrangement";

const chart = (name: string, count = 2): Named => {
  const numbers = Array.from({ length: count }, (_, index) => index);
  return [name, [{ id: name, label: "a/b", tone: 0, points: { kind: "train", name, times: numbers, steps: numbers, hasSteps: true, values: numbers } }]];
};
const charts = [chart("loss"), chart("accuracy"), chart("grad_norm")];

test.each([
  [{ pins: [], order: "reported", search: "" }, "loss accuracy grad_norm"],
  [{ pins: [], order: "name", search: "" }, "accuracy grad_norm loss"],
  [{ pins: ["grad_norm", "loss", "gone"], order: "reported", search: "" }, "grad_norm loss accuracy"],
  [{ pins: ["loss"], order: "name", search: "" }, "loss accuracy grad_norm"],
  [{ pins: ["loss"], order: "name", search: " NORM" }, "grad_norm"],
] as const)("%j", (options, expected) => {
  expect(arranged(charts, { ...options, pins: [...options.pins] }).map(([name]) => name).join(" ")).toBe(expected);
});

test("what has one value is no chart", () => {
  const { drawn, single } = separated([chart("loss"), chart("parameters", 1)]);
  expect([drawn.map(([name]) => name), single.map(({ id }) => id)]).toEqual([["loss"], ["parameters"]]);
});

test("samples are saved as CSV, and nothing of it is a formula", () => {
  const points = { kind: "train" as const, name: '=a,"b"', times: [0, 1], steps: [-1, 5], hasSteps: true, values: [-0.5, NaN] };
  expect(csvOf([{ id: "", label: "a/b", tone: 0, points }])).toBe(
    'training,kind,metric,step,epoch,time,value\na/b,train,"\'=a,""b""",,,1970-01-01T00:00:00.000Z,-0.5\na/b,train,"\'=a,""b""",5,,1970-01-01T00:00:01.000Z,NaN\n',
  );
});

test.each([
  ["x;=1+1", "x;'=1+1"],
  ["x\t@a", "x\t'@a"],
  ["x\n=1", "\"x\n'=1\""],
  ["x; \"+1", "\"x; \"\"'+1\""],
  ["\uff1d1+1", "'\uff1d1+1"],
  ["\t1", "'\t1"],
  ["a=1; b=-2", "a=1; b=-2"],
  ["-0.5", "-0.5"],
])("%j is no formula, whatever a spreadsheet takes for the end of a cell", (text, expected) => {
  expect(csvText([[text]])).toBe(`${expected}\n`);
});

test("a name that begins like a number is no formula", () => {
  const points = { kind: "train" as const, name: "-1+cmd|A0", times: [0], steps: [1], hasSteps: false, values: [-1e-7] };
  expect(csvOf([{ id: "", label: "a", tone: 0, points }]).split("\n")[1]).toBe("a,train,'-1+cmd|A0,,1,1970-01-01T00:00:00.000Z,-1e-7");
});

test.each([
  ["train/loss", "train-loss.csv"],
  ["損失", "-.csv"],
  ["", "metric.csv"],
])("%j is saved as %j", (name, expected) => {
  expect(fileName(name, "csv")).toBe(expected);
});
