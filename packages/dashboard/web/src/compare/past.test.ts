import { expect, test } from "vitest";
import type { Past } from "../model";
import { UNKNOWN, known } from "./past";

test("what comes about a training is put together, and leaves others alone", () => {
  const past = { uid: "u" } as Past;
  const one = known(known(new Map(), "a/b/u", { past }), "a/b/v", {});
  const both = known(one, "a/b/u", { trouble: "no" });
  expect(both.get("a/b/u")).toEqual({ ...UNKNOWN, past, trouble: "no" });
  expect(both.get("a/b/v")).toBe(one.get("a/b/v"));
});
