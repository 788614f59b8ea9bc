import { expect, test } from "vitest";
import { readOptions, writeOptions } from "./options";

const REST = { pins: [], order: "reported" as const, search: "" };

test.each([
  ["", { isLog: false, smoothing: 0, axis: "step", ...REST }],
  ["y=log&smooth=0.9&x=time", { isLog: true, smoothing: 0.9, axis: "time", ...REST }],
  ["y=other&smooth=1&x=other", { isLog: false, smoothing: 0, axis: "step", ...REST }],
  ["pin=a&pin=b&pin=a&order=name&metric=loss", { isLog: false, smoothing: 0, axis: "step", pins: ["a", "b"], order: "name", search: "loss" }],
  ["smooth=nonsense", { isLog: false, smoothing: 0, axis: "step", ...REST }],
])("?%s", (query, options) => {
  expect(readOptions(new URLSearchParams(query))).toEqual(options);
});

test("other parts of the address stay", () => {
  const query = new URLSearchParams("job=a%2Fb&job=a%2Fc&y=log&smooth=0.9");
  expect(writeOptions(new URLSearchParams("pin=c"), { isLog: false, smoothing: 0, axis: "step", pins: ["a", "b"], order: "name", search: "x" })).toBe("order=name&metric=x&pin=a&pin=b");
  expect(writeOptions(query, { isLog: false, smoothing: 0.6, axis: "time", ...REST })).toBe("job=a%2Fb&job=a%2Fc&smooth=0.6&x=time");
});

test("an address has a smoothing other than the usual one alone", () => {
  const options = readOptions(new URLSearchParams(), 0.6);
  expect(options.smoothing).toBe(0.6);
  expect(writeOptions(new URLSearchParams(), options, 0.6)).toBe("");
  const none = writeOptions(new URLSearchParams(), { ...options, smoothing: 0 }, 0.6);
  expect(readOptions(new URLSearchParams(none), 0.6).smoothing).toBe(0);
});
