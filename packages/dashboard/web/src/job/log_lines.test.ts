import { expect, test } from "vitest";
import { KEPT, type Line, add, bySource, having, shown, unfinished } from "./log_lines";

test("lines of several sources are in the order in which they were written", () => {
  const first = add([], 0, [["2026-01-01T00:00:01Z", "a"], ["2026-01-01T00:00:03Z", "c"]], 0);
  const both = add(first, 1, [["2026-01-01T00:00:02Z", "b"], ["2026-01-01T00:00:04Z", "d"]], 2);
  expect(both.map((line) => line.text)).toEqual(["a", "b", "c", "d"]);
  expect(first).toHaveLength(2);
});

test.each([
  ["2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.51Z"],
  ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000001Z"],
  ["2026-01-01T00:00:00.999999999Z", "2026-01-01T00:00:01Z"],
])("%s is before %s", (early, late) => {
  for (const [first, second] of [[early, late], [late, early]] as const) {
    const lines = add(add([], 0, [[first, ""]], 0), 1, [[second, ""]], 1);
    expect(lines.map((line) => line.stamp)).toEqual([early, late]);
  }
});

test("each source has its own lines, also when it has written none", () => {
  const lines = add(add([], 0, [["1", "a"], ["3", "c"]], 0), 2, [["2", "b"]], 2);
  expect(bySource(lines, 3).map((own) => own.map((line) => line.text))).toEqual([["a", "c"], [], ["b"]]);
});

test("only the last lines are kept", () => {
  const many = Array.from({ length: KEPT + 10 }, (_, index): [string, string] => ["", String(index)]);
  const lines = add([], 0, many, 0);
  expect(lines).toHaveLength(KEPT);
  expect(lines[0]?.text).toBe("10");
});

test.each([
  ["plain", "plain"],
  ["10 %\r20 %", "20 %"],
  ["\u001b[31mred\u001b[0m", "red"],
  ["bell\u0007", "bell\ufffd"],
  ["right\u202eleft", "right\ufffdleft"],
  ["<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"],
])("%j is shown as %j", (text, expected) => {
  expect(shown(text)).toBe(expected);
});

test("each line is searched once for a text, however often it is asked about", () => {
  let looks = 0;
  const line = { get text() { looks++; return "Epoch 3"; } } as Line;
  const has = having("epoch");
  expect([has(line), has(line), has(line)]).toEqual([true, true, true]);
  expect(looks).toBe(1);
});

test("the state of a line that has not ended keeps its place below all others", () => {
  const [first, second] = [unfinished(2, ["2026-01-01T00:00:00Z", "10%"]), unfinished(2, ["2026-01-01T00:00:01Z", "20%"])];
  expect(first.id).toBeLessThan(0);
  expect(second.id).toBe(first.id);
  expect(unfinished(3, ["", "10%"]).id).not.toBe(first.id);
  expect(second).toMatchObject({ source: 2, text: "20%" });
});
