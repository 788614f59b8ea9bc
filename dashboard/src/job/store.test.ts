import { expect, test } from "vitest";
import { EMPTY, extend, received } from "./store";

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

test.each([
  [{ name: "problem", data: { text: "trainjobs cannot be watched" } }, { problem: "trainjobs cannot be watched" }],
  [{ name: "problem", data: { text: "" } }, { problem: "" }],
  [{ name: "gone", data: {} }, { problem: "", isGone: true }],
  [{ name: "problems", data: ["pods cannot be watched"] }, { problem: "before", problems: ["pods cannot be watched"] }],
])("the event %j changes the page", (event, changes) => {
  expect(received({ ...EMPTY, problem: "before" }, event)).toEqual({ ...EMPTY, ...changes });
});
