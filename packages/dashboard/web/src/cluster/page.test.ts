import { expect, test } from "vitest";
import { isWaiting } from "./page";

test.each([
  ["Suspended", false, true],
  ["Pending", false, true],
  ["Pending", true, false],
  ["Running", false, false],
  ["Complete", false, false],
])("%s, deleted %s, waits %s", (state, isDeleted, waits) => {
  expect(isWaiting({ state, isDeleted })).toBe(waits);
});
