import { expect, test } from "vitest";
import type { Row } from "../model";
import { type Listing, received } from "./store";

const row = { uid: "1", namespace: "a", name: "demo", state: "Running" } as Row;
const START: Listing = { rows: new Map(), isLoaded: false, more: 0, problem: "" };

test("a problem shows before the first rows, stays with them, and goes when the server says so", () => {
  const waiting = received(START, { name: "problem", data: { text: "forbidden" } });
  expect(waiting).toEqual({ ...START, problem: "forbidden" });
  const loaded = received(waiting, { name: "rows", data: { all: [row] } });
  expect(loaded).toMatchObject({ isLoaded: true, problem: "forbidden" });
  const over = received(loaded, { name: "problem", data: { text: "" } });
  expect(over.problem).toBe("");
  expect([...over.rows.values()]).toEqual([row]);
});

test("the newest rows are there before all others", () => {
  const first = received(START, { name: "rows", data: { all: [row], more: 2 } });
  expect([first.isLoaded, first.more]).toEqual([true, 2]);
  const all = received(first, { name: "rows", data: { changed: [{ ...row, name: "b" }, { ...row, name: "c" }], gone: [] } });
  expect([all.rows.size, all.more]).toEqual([3, 0]);
});

test("rows change and go; other events change nothing", () => {
  const loaded = received(START, { name: "rows", data: { all: [row] } });
  const changed = received(loaded, { name: "rows", data: { changed: [{ ...row, state: "Failed" }] } });
  expect([...changed.rows.values()]).toEqual([{ ...row, state: "Failed" }]);
  expect(received(changed, { name: "rows", data: { gone: [["a", "demo"]] } }).rows.size).toBe(0);
  expect(received(loaded, { name: "other", data: {} })).toBe(loaded);
});
