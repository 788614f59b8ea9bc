import { expect, test } from "vitest";
import { rowOf } from "./made";
import { type PastSweepRow, goneSweepsPath, pastSweepApiPath, withPage } from "./past";

test("paths have what is asked for and nothing else", () => {
  expect(goneSweepsPath("", "")).toBe("/api/past/sweeps?deleted=true");
  expect(goneSweepsPath("a b", "team", "1.5/u")).toBe("/api/past/sweeps?deleted=true&q=a+b&namespace=team&after=1.5%2Fu");
  expect(pastSweepApiPath({ namespace: "team", name: "digits", uid: "u" })).toBe("/api/past/sweeps/team/digits/u");
});

test("a page is added behind those before, without what has come already", () => {
  const of = (...uids: string[]): PastSweepRow[] => uids.map((uid) => ({ ...rowOf({ uid }), deleted: "2026-01-01T00:00:00Z", seconds: 60 }));
  const first = withPage({ sweeps: [], next: "", problem: "no answer" }, { sweeps: of("a", "b"), next: "x" });
  expect(first).toMatchObject({ next: "x", problem: "" });
  expect(withPage(first, { sweeps: of("b", "c"), next: "" }).sweeps.map(({ uid }) => uid)).toEqual(["a", "b", "c"]);
});
