import { expect, test } from "vitest";
import type { Past, Row } from "../model";
import { liveChoices, pastChoices } from "./choices";

const row = (name: string, created: string, more: Partial<Row> = {}) =>
  ({ uid: name, namespace: "vision", name, state: "Running", runtime: "torch", owner: "jane", created, metric: null, labels: { team: "seg" }, ...more }) as Row;

const ROWS = [row("a", "2026-01-01"), row("b", "2026-01-03"), row("c", "2026-01-02", { state: "Failed" })];

test.each([
  ["", ["b", "c", "a"]],
  ["VISION failed", ["c"]],
  ["team seg jane", ["b", "c", "a"]],
  ["nothing", []],
])("%s finds TrainJobs, the newest first", (search, names) => {
  expect(liveChoices(ROWS, search, new Set()).map(({ name }) => name)).toEqual(names);
});

test("those that are chosen already come first", () => {
  expect(liveChoices(ROWS, "", new Set(["vision/a"])).map(({ id }) => id)).toEqual(["vision/a", "vision/b", "vision/c"]);
});

test("the history offers what the cluster does not have", () => {
  const past = (uid: string, more: Partial<Past> = {}) =>
    ({ uid, namespace: "vision", name: "old", state: "Running", runtime: "torch", ended: null, deleted: "2026-01-01T00:00:00Z", metric: null, ...more }) as Past;
  const metric = { name: "loss", isEval: true, value: "0.25" };
  expect(pastChoices([past("a"), past("u"), past("v", { ended: "2026-01-01T00:00:00Z", state: "Complete", metric })], ROWS)).toMatchObject([
    { id: "vision/old/u", state: "Stopped", detail: "torch" },
    { id: "vision/old/v", state: "Complete", detail: "evaluation loss 0.25" },
  ]);
});
