import { expect, test } from "vitest";
import { earlierQuery } from "./earlier";

test.each([
  ["2026-01-01T00:00:00Z", "namespace=a&name=b&before=1767225600"],
  [null, "namespace=a&name=b"],
  ["nonsense", "namespace=a&name=b"],
])("before %s", (created, query) => {
  expect(earlierQuery({ namespace: "a", name: "b", uid: "u", created }).toString()).toBe(query);
});
