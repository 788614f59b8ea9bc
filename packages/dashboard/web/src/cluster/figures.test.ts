import { expect, test } from "vitest";
import { figure, measured } from "./figures";

test.each<[string, number | null, string]>([
  ["cpu", 3.756, "3.76"],
  ["cpu", 48.75, "48.8"],
  ["cpu", 17976.5, "17,977"],
  ["nvidia.com/gpu", 8, "8"],
  ["nvidia.com/gpu", 1200, "1,200"],
  ["memory", 2 ** 41, "2 TiB"],
  ["cpu", null, ""],
])("%s %s is %j", (resource, value, text) => {
  expect(figure(resource, value)).toBe(text);
});

test.each([
  ["cpu", 7.101, "7.1"],
  ["cpu", 83.75, "84"],
  ["memory", 2 ** 30 * 13, "13 GiB"],
])("%s %s is measured as %j", (resource, value, text) => {
  expect(measured(resource, value)).toBe(text);
});
