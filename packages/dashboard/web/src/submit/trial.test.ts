import { expect, test } from "vitest";
import { type Trial, verdictOf } from "./trial";

test.each<[Trial, string, string, number]>([
  [{ namespace: "a", name: "b" }, "good", "The cluster would take it as b in a.", 0],
  [{ problem: "you may not create TrainJobs" }, "bad", "you may not create TrainJobs", 1],
  [{ problem: "no", errors: [] }, "bad", "no", 1],
  [
    {
      problem: "denied: spec.a: x; spec.b: y",
      errors: [
        { field: "spec.a", message: "x" },
        { field: "spec.b", message: "y" },
      ],
    },
    "bad",
    "spec.a: x\nspec.b: y",
    2,
  ],
])("%j", (trial, tone, text, count) => {
  const verdict = verdictOf(trial);
  expect([verdict.tone, verdict.text, verdict.errors.length]).toEqual([tone, text, count]);
});
