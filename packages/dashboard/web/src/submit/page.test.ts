import { expect, test } from "vitest";
import { verdictOf } from "./page";

test.each([
  [{ namespace: "a", name: "b" }, { tone: "good", text: "The cluster would take it as b in a." }],
  [{ problem: "spec.trainer.numNodes: must be at least 1" }, { tone: "bad", text: "spec.trainer.numNodes: must be at least 1" }],
])("%j", (trial, verdict) => {
  expect(verdictOf(trial)).toEqual(verdict);
});
