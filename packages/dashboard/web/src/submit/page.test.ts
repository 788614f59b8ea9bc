import { expect, test } from "vitest";
import { beginningOf } from "./page";

test.each([
  ["a copy of a TrainJob", "demo", "", "/api/trainjobs/team/demo/copy", "/jobs/team/demo"],
  ["a trial of a sweep", "", "namespace=team&sweep=digits&trial=7", "/api/sweeps/team/digits/trials/7/copy", "/sweeps/team/digits"],
  ["no number", "", "namespace=team&sweep=digits&trial=x", undefined, "/"],
  ["no namespace", "", "sweep=digits&trial=7", undefined, "/"],
  ["an empty one", "", "namespace=team", undefined, "/"],
])("%s", (_, name, query, copy, path) => {
  const found = beginningOf({ namespace: name && "team", name }, new URLSearchParams(query));
  expect([found.origin?.copy, found.path]).toEqual([copy, path]);
});
