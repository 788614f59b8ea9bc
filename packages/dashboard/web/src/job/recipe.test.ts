import { expect, test } from "vitest";
import { besideSweep } from "./recipe";

test("the parameters of a sweep are shown once, and others that are called like one", () => {
  const reported: [string, string][] = [["learning_rate", "0.1"], ["batch", "64"], ["seed", "1"]];
  const trial = { sweep: "digits", number: 1, parameters: [["learning-rate", "0.1"], ["batch", "32"]] as [string, string][], pruned: "" };
  expect(besideSweep(reported, trial)).toEqual([["batch", "64"], ["seed", "1"]]);
  expect(besideSweep(reported, null)).toEqual(reported);
});
