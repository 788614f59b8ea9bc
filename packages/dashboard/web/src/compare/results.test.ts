import { expect, test } from "vitest";
import type { Points } from "../model";
import { bestOf, betterOf, firstOf, metricsOf } from "./results";
import type { Training } from "./training";

const points = (name: string, values: number[], kind: Points["kind"] = "train"): Points => ({ kind, name, times: values, steps: values, hasSteps: true, values });
const training = (id: string, ...curves: Points[]) => ({ id, curves: new Map(curves.map((each) => [`${each.kind}/${each.name}`, each])) }) as unknown as Training;

test.each([
  ["loss", "less"],
  ["nll_loss", "less"],
  ["perplexity", "less"],
  ["rmse", "less"],
  ["wer", "less"],
  ["accuracy", "more"],
  ["top_5", "more"],
  ["mAP@50", "more"],
  ["f1", "more"],
  ["rougeL", "more"],
  ["samples_per_second", "more"],
  ["learning_rate", null],
  ["grad_norm", null],
  ["epoch", null],
  ["glossary", null],
])("of %s %s is better", (name, better) => {
  expect(betterOf(name)).toBe(better);
});

test("metrics have what all trainings had of them, those with a direction first", () => {
  const metrics = metricsOf([
    training("a", points("learning_rate", [1]), points("custom", [1]), points("loss", [3, 1, 2]), points("val_loss", [4])),
    training("b", points("loss", [NaN]), points("empty", [])),
  ]);
  expect(metrics.map(({ title, isEval }) => `${title} ${isEval}`)).toEqual(["loss false", "loss true", "custom false", "learning_rate false"]);
  expect(metrics[0]!.values).toEqual([{ last: 2, min: 1, max: 3 }, { last: NaN, min: NaN, max: NaN }]);
  expect(metrics[1]!.values[1]).toBeNull();
  expect(firstOf(metrics).map(({ key }) => key)).toEqual(["mt:loss", "me:loss"]);
  expect(firstOf(metrics.slice(2)).map(({ title }) => title)).toEqual(["custom", "learning_rate"]);
});

test.each([
  ["loss", [3, 1, 2], "last", 1],
  ["accuracy", [3, 1, 2], "last", 3],
  ["custom", [3, 1], "last", null],
  ["loss", [3], "last", null],
  ["loss", [2, 2], "last", null],
  ["loss", [NaN, 2, 3], "min", 2],
] as const)("the best %s of %j by %s is %s", (name, values, statistic, best) => {
  const [metric] = metricsOf(values.map((value, index) => training(String(index), points(name, [value]))));
  expect(bestOf(metric!, statistic, () => true)).toBe(best);
});

test("what is not shown is not the best", () => {
  const [metric] = metricsOf([1, 2, 3].map((value) => training(String(value), points("loss", [value]))));
  expect(bestOf(metric!, "last", (index) => index > 0)).toBe(2);
});
