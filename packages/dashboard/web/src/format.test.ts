import { expect, test } from "vitest";
import { age, amount, duration, minute, moment, short, zone } from "./format";

test.each([
  [0, "0s"],
  [-5, "0s"],
  [59, "59s"],
  [65, "1m 5s"],
  [780, "13m"],
  [7500, "2h 5m"],
  [9 * 86_400 + 5 * 3_600, "9d 5h"],
  [10 * 86_400 + 5 * 3_600, "10d"],
])("%d seconds", (seconds, text) => {
  expect(duration(seconds)).toBe(text);
});

test("an age that is not known is empty", () => {
  expect(age(null, 0)).toBe("");
  expect(age("nonsense", 0)).toBe("");
  expect(age("1970-01-01T00:00:00Z", 5000)).toBe("5s");
});

test.each([
  [0, "0"],
  [0.23471, "0.2347"],
  [0.00001, "1e-5"],
  [12_500, "12500"],
  [null, ""],
  [Infinity, ""],
])("%s is short", (value, text) => {
  expect(short(value)).toBe(text);
});

test.each([
  ["nvidia.com/gpu", 0, "0"],
  ["cpu", 1.5, "1.5"],
  ["memory", 512, "512"],
  ["memory", 1023 * 1024, "1023 KiB"],
  ["memory", 96.26 * 2 ** 30, "96.3 GiB"],
  ["memory", 2 ** 61, "2048 PiB"],
  ["memory", null, ""],
])("%s of %s", (resource, value, text) => {
  expect(amount(resource, value)).toBe(text);
});

test.each([null, undefined, "", "nonsense"])("a time that is not known is empty: %s", (time) => {
  expect([moment(time), minute(time)]).toEqual(["", ""]);
});

test("a time says of which zone it is", () => {
  const zoned = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts(0);
  expect(moment("1970-01-01T00:00:00Z")).toContain(zoned.find(({ type }) => type === "timeZoneName")!.value);
  expect(zone()).not.toBe("");
});
