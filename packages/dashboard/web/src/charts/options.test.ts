import { expect, test } from "vitest";
import { readOptions, writeOptions } from "./options";

test.each([
  ["", { isLog: false, smoothing: 0, axis: "step" }],
  ["y=log&smooth=0.9&x=time", { isLog: true, smoothing: 0.9, axis: "time" }],
  ["y=other&smooth=1&x=other", { isLog: false, smoothing: 0, axis: "step" }],
  ["smooth=nonsense", { isLog: false, smoothing: 0, axis: "step" }],
])("?%s", (query, options) => {
  expect(readOptions(new URLSearchParams(query))).toEqual(options);
});

test("other parts of the address stay", () => {
  const query = new URLSearchParams("job=a%2Fb&job=a%2Fc&y=log&smooth=0.9");
  expect(writeOptions(query, { isLog: false, smoothing: 0.6, axis: "time" })).toBe("job=a%2Fb&job=a%2Fc&smooth=0.6&x=time");
});
