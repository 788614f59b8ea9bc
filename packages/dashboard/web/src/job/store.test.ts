import { expect, test } from "vitest";
import { EMPTY, extend, received, withNews } from "./store";

const loss = (values: number[]) => ({
  kind: "train" as const, name: "loss", times: values, steps: values, hasSteps: true, values,
});

test("samples are added to those before, and take their place after a reset", () => {
  const first = extend(new Map(), { isReset: true, hasMore: false, series: [loss([3, 2])] });
  const second = extend(first, { isReset: false, hasMore: false, series: [loss([1])] });
  expect(second.get("train/loss")?.values).toEqual([3, 2, 1]);
  expect(first.get("train/loss")?.values).toEqual([3, 2]);
  expect(extend(second, { isReset: true, hasMore: false, series: [] }).size).toBe(0);
});

test("what takes the place of curves is shown once all of it has come", () => {
  const values = (shown: { curves: ReadonlyMap<string, { values: number[] }> }) => shown.curves.get("train/loss")?.values;
  const first = withNews(EMPTY, { isReset: true, hasMore: true, series: [loss([1])] });
  expect(values(first)).toEqual([1]);
  const second = withNews(first, { isReset: false, hasMore: false, series: [loss([2])] });
  expect(values(second)).toEqual([1, 2]);
  const begun = withNews(second, { isReset: true, hasMore: true, series: [loss([3])] });
  expect(values(begun)).toEqual([1, 2]);
  expect(values(withNews(begun, { isReset: false, hasMore: true, series: [loss([4])] }))).toEqual([1, 2]);
  const whole = withNews(begun, { isReset: false, hasMore: false, series: [loss([4])] });
  expect(values(whole)).toEqual([3, 4]);
  expect(whole.coming).toBeNull();
});

test.each([
  [{ name: "problem", data: { text: "trainjobs cannot be watched" } }, { problem: "trainjobs cannot be watched" }],
  [{ name: "problem", data: { text: "" } }, { problem: "" }],
  [{ name: "gone", data: {} }, { problem: "", isGone: true }],
  [{ name: "problems", data: ["pods cannot be watched"] }, { problem: "before", problems: ["pods cannot be watched"] }],
])("the event %j changes the page", (event, changes) => {
  expect(received({ ...EMPTY, problem: "before" }, event)).toEqual({ ...EMPTY, ...changes });
});
