import { expect, test } from "vitest";
import type { Past } from "../model";
import { EMPTY, apiPath, joined, listPath } from "./store";

const past = (uid: string) => ({ uid }) as Past;

test("pages are joined, and nothing is listed twice", () => {
  const first = joined(EMPTY, { trainings: [past("a"), past("b")], next: "1/b", namespaces: ["team"], note: "" }, true);
  expect(first).toEqual({ trainings: [past("a"), past("b")], next: "1/b", namespaces: ["team"], note: "", isLoaded: true, problem: "" });
  const second = joined(first, { trainings: [past("b"), past("c")], next: "", namespaces: ["team"], note: "" }, false);
  expect(second.trainings.map(({ uid }) => uid)).toEqual(["a", "b", "c"]);
  expect(second.next).toBe("");
});

test("another first page takes the place of all", () => {
  const before = joined(EMPTY, { trainings: [past("a")], next: "1/a", namespaces: [], note: "" }, true);
  expect(joined({ ...before, problem: "no" }, { trainings: [], next: "", namespaces: [], note: "" }, true)).toEqual({ ...EMPTY, isLoaded: true });
});

test("paths keep what is asked, whatever is in it", () => {
  expect(listPath(new URLSearchParams())).toBe("/api/history");
  expect(listPath(new URLSearchParams({ q: "a&b" }), "1.5/u")).toBe("/api/history?q=a%26b&after=1.5%2Fu");
  expect(apiPath({ namespace: "a", name: "b/..", uid: "c" })).toBe("/api/history/a/b%2F../c");
});
