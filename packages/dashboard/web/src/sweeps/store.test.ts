import { expect, test } from "vitest";
import { select } from "./list";
import { rowOf, sweepOf, trialOf } from "./made";
import { EMPTY, received, rowsReceived, withTrials } from "./store";
import { trialPath } from "./trial_link";

test("trials that have not changed stay the same, in the order of their numbers", () => {
  const first = withTrials(null, { all: [trialOf(2, 0.5), trialOf(4, 0.4)] });
  const next = withTrials(first, { changed: [trialOf(3, 0.3), trialOf(4, 0.2)], gone: [2] });
  expect(next.map(({ number, value }) => [number, value])).toEqual([
    [3, 0.3],
    [4, 0.2],
  ]);
  expect(withTrials(first, { changed: [trialOf(3, 0.3)] })[0]).toBe(first[0]);
});

test("a sweep that is gone keeps what is shown of it", () => {
  const shown = received(EMPTY, { name: "sweep", data: sweepOf() });
  const gone = received(received(shown, { name: "problem", data: { text: "lost" } }), { name: "gone", data: {} });
  expect(gone).toMatchObject({ isGone: true, problem: "", sweep: { name: "digits" } });
  expect(received(gone, { name: "heard", data: {} })).toBe(gone);
});

test("the list takes rows as that of TrainJobs does", () => {
  const listing = { rows: new Map(), isLoaded: false, problem: "" };
  const loaded = rowsReceived(listing, { name: "rows", data: { all: [rowOf(), rowOf({ name: "other" })], more: 0 } });
  const next = rowsReceived(loaded, { name: "rows", data: { changed: [rowOf({ state: "Complete" })], gone: [["default", "other"]] } });
  expect([...next.rows.values()].map(({ name, state }) => [name, state])).toEqual([["digits", "Complete"]]);
});

test.each([
  ["", "", ["new", "old", "else"]],
  ["", "default", ["new", "old"]],
  ["COMPLETE val", "", ["old"]],
  ["nothing", "", []],
])("a search for %j in %j", (text, namespace, names) => {
  const rows = [rowOf({ name: "old", state: "Complete", created: "2026-01-02T00:00:00Z" }), rowOf({ name: "new", created: "2026-01-03T00:00:00Z" }), rowOf({ name: "else", namespace: "other" })];
  expect(select(rows, text, namespace).map(({ name }) => name)).toEqual(names);
});

test.each([
  [{ isThere: true }, true, "/jobs/default/digits-trial-1"],
  [{ isThere: false }, false, null],
  [{ isThere: false }, true, "/history/default/digits-trial-1/uid-1"],
  [{ isThere: false, uid: "" }, true, "/history?q=digits-trial-1&namespace=default"],
])("the way to a trial %j, with a history: %j", (more, hasHistory, path) => {
  expect(trialPath({ namespace: "default" }, trialOf(1, 0.5, more), hasHistory)).toBe(path);
});
