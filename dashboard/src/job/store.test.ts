import { expect, test } from "vitest";
import { extend } from "./store";

const loss = (values: number[]) => ({
  kind: "train" as const, name: "loss", times: values, steps: values, values,
});

test("samples are added to those before, and take their place after a reset", () => {
  const first = extend(new Map(), { isReset: true, series: [loss([3, 2])] });
  const second = extend(first, { isReset: false, series: [loss([1])] });
  expect(second.get("train/loss")?.values).toEqual([3, 2, 1]);
  expect(first.get("train/loss")?.values).toEqual([3, 2]);
  expect(extend(second, { isReset: true, series: [] }).size).toBe(0);
});
