import { expect, test } from "vitest";
import { jobPath, parse } from "./route";

test.each([
  ["/", { view: "list" }],
  ["/jobs", { view: "list" }],
  ["/jobs/a/b", { view: "job", namespace: "a", name: "b", tab: "overview" }],
  ["/jobs/a/b/logs", { view: "job", namespace: "a", name: "b", tab: "logs" }],
  ["/jobs/%/b", { view: "list" }],
  ["/jobs/a/b/other", { view: "job", namespace: "a", name: "b", tab: "overview" }],
])("%s", (path, route) => {
  expect(parse(path)).toEqual(route);
});

test("a path comes back as what it was made of", () => {
  expect(parse(jobPath("team-a", "demo", "yaml"))).toEqual({ view: "job", namespace: "team-a", name: "demo", tab: "yaml" });
});
