import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { forgetDrafts, keepDraftsOf, storeDraft, storedDraft } from "./draft";

const DRAFT = { original: "a: 1\n", text: "a: 2\n" };

beforeEach(() => {
  // Its entries are its properties, as those of the storage of a browser.
  const methods = {
    getItem: (key: string) => kept[key] ?? null,
    setItem: (key: string, value: string) => void (kept[key] = value),
    removeItem: (key: string) => void delete kept[key],
  };
  const kept: Record<string, string> = Object.create(methods);
  vi.stubGlobal("sessionStorage", kept);
});

afterEach(() => vi.unstubAllGlobals());

test("a draft is kept while it says something new", () => {
  storeDraft("a/b", DRAFT);
  expect(storedDraft("a/b")).toEqual(DRAFT);
  expect(storedDraft("")).toBeNull();
  storeDraft("a/b", { ...DRAFT, text: DRAFT.original });
  expect(storedDraft("a/b")).toBeNull();
});

test("drafts are there for their user when a token has expired, and for nobody else", () => {
  keepDraftsOf("me cluster");
  storeDraft("", DRAFT);
  sessionStorage.setItem("token", "other");
  keepDraftsOf("me cluster");
  expect(storedDraft("")).toEqual(DRAFT);
  keepDraftsOf("you cluster");
  expect(storedDraft("")).toBeNull();
  expect(sessionStorage.getItem("token")).toBe("other");
});

test("drafts go with a log out", () => {
  storeDraft("", DRAFT);
  storeDraft("a/b", DRAFT);
  forgetDrafts();
  expect([storedDraft(""), storedDraft("a/b")]).toEqual([null, null]);
});
