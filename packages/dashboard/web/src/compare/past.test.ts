import { expect, test } from "vitest";
import type { Past } from "../model";
import { UNKNOWN, inTurn, known } from "./past";

test("what comes about a training is put together, and leaves others alone", () => {
  const past = { uid: "u" } as Past;
  const one = known(known(new Map(), "a/b/u", { past }), "a/b/v", {});
  const both = known(one, "a/b/u", { trouble: "no" });
  expect(both.get("a/b/u")).toEqual({ ...UNKNOWN, past, trouble: "no" });
  expect(both.get("a/b/v")).toBe(one.get("a/b/v"));
});

test("no more is asked at once than may be, in order, and a failure holds up nothing", async () => {
  const ask = inTurn(2);
  const ends: (() => void)[] = [];
  const begun: number[] = [];
  for (let number = 0; number < 4; number++) {
    ask(() => {
      begun.push(number);
      return new Promise((resolve, reject) => ends.push(number === 0 ? () => reject(new Error("no")) : () => resolve(null))).catch(() => null);
    });
  }
  expect(begun).toEqual([0, 1]);
  ends[0]!();
  await new Promise((resolve) => setTimeout(resolve));
  expect(begun).toEqual([0, 1, 2]);
});
