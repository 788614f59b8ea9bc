import { expect, test } from "vitest";
import { linesOf, sourcesOf } from "./page";

const TAILS = [
  { node: "node-0", container: "node", pod: "a", lines: [["2026-01-01T00:00:00Z", "one"], ["2026-01-01T00:00:02Z", "three"]] as [string, string][] },
  { node: "node-1", container: "node", pod: "b", lines: [["2026-01-01T00:00:01Z", "two"]] as [string, string][] },
  { node: "node-1", container: "sidecar", pod: "b", lines: [] },
];

test("lines of several containers are in the order of their time", () => {
  expect(linesOf(TAILS).map(({ text, source }) => [text, source])).toEqual([["one", 0], ["two", 1], ["three", 0]]);
});

test("containers are named where a node has several", () => {
  expect(sourcesOf(TAILS)).toEqual([
    { path: "node-0/node", label: "node-0" },
    { path: "node-1/node", label: "node-1/node" },
    { path: "node-1/sidecar", label: "node-1/sidecar" },
  ]);
});
