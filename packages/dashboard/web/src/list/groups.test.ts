import { expect, test } from "vitest";
import type { Listed } from "../model";
import { choices, grouped, items, summary } from "./groups";

function row(name: string, labels: Record<string, string>, loss: number, state = "Running"): Listed {
  return { name, namespace: "a", runtime: "torch", owner: "", state, labels, metric: { name: "loss", isEval: false, trend: [9, loss] } } as unknown as Listed;
}

const ROWS = [row("three", { sweep: "b" }, 3), row("two", {}, 2), row("one", { sweep: "a", team: "x" }, 1, "Failed"), row("four", { sweep: "b" }, 0.5)];

test("groups come in the order of their rows, those without a value last", () => {
  expect(grouped(ROWS, "label:sweep").map(({ value, rows }) => [value, rows.map(({ name }) => name)])).toEqual([
    ["b", ["three", "four"]],
    ["a", ["one"]],
    ["", ["two"]],
  ]);
});

test.each([
  ["", [], ["three", "two", "one", "four"]],
  ["label:sweep", [], ["= b", "three", "four", "= a", "one", "= ", "two"]],
  ["label:constructor", [], ["= ", "three", "two", "one", "four"]],
  ["label:sweep", ["b"], ["= b", "= a", "one", "= ", "two"]],
])("by %j with %j closed", (groupBy, closed, lines) => {
  expect(items(ROWS, groupBy, new Set(closed)).map(({ group, row: each }) => (group ? `= ${group.value}` : each.name))).toEqual(lines);
});

test("a group says how its rows are, and the range of their metric", () => {
  expect(summary({ value: "", rows: ROWS })).toBe("3 running, 1 failed; loss 0.5 to 3");
});

test("of many labels those are offered that most rows have", () => {
  const own = Array.from({ length: 60 }, (_, index) => row(`${index}`, { [`own-${index}`]: "", team: "x" }, 0));
  const offered = [...choices(own, "").keys()];
  expect([offered.length, offered.includes("label:team")]).toEqual([53, true]);
});

test("labels that some rows have can be chosen, and that of the address", () => {
  expect([...choices(ROWS, "label:gone").keys()]).toEqual(["owner", "runtime", "namespace", "label:gone", "label:sweep", "label:team"]);
});
