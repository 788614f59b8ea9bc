import { beforeEach, expect, test, vi } from "vitest";
import { removeView, saveView, savedViews } from "./views";

const items = new Map<string, string>();
vi.stubGlobal("localStorage", { getItem: (key: string) => items.get(key) ?? null, setItem: (key: string, value: string) => void items.set(key, value) });
beforeEach(() => items.clear());

test("a view is kept by its name, until it is removed", () => {
  saveView({ name: "mine", path: "/?q=a" });
  saveView({ name: "failed", path: "/?state=failed" });
  saveView({ name: "mine", path: "/?q=b" });
  expect(savedViews()).toEqual([{ name: "failed", path: "/?state=failed" }, { name: "mine", path: "/?q=b" }]);
  removeView("failed");
  expect(savedViews().map(({ name }) => name)).toEqual(["mine"]);
});

test.each([["no JSON"], ["{}"], ['[{"name": "x", "path": "//elsewhere.example"}, {"name": "y"}, null]']])("%s has no view", (kept) => {
  items.set("views", kept);
  expect(savedViews()).toEqual([]);
});
