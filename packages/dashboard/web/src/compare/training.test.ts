import { expect, test } from "vitest";
import type { Past, Row } from "../model";
import { UNKNOWN } from "./past";
import { NOTHING } from "./store";
import { tones, trainingsOf } from "./training";

test("a training keeps its colour while others come and go, and a new one takes one that is free", () => {
  const three = tones(new Map(), ["a", "b", "c"]);
  expect([...three.values()]).toEqual([0, 1, 2]);
  const other = tones(three, ["c", "d", "b", "e"]);
  expect(Object.fromEntries(other)).toEqual({ c: 2, b: 1, d: 0, e: 3 });
});

const labels = (jobs: string[], past: string[] = [], sides = new Map()) =>
  trainingsOf(jobs, jobs.map(() => NOTHING), past, sides, new Map()).map(({ label }) => label);

test("labels are as short as they can be, and each is another", () => {
  expect(labels(["team/a", "team/b"])).toEqual(["a", "b"]);
  expect(labels(["team/a", "other/a"])).toEqual(["team/a", "other/a"]);
  expect(labels(["team/a"], ["team/a/0123456789", "team/a/abcdefghij"])).toEqual(["a, on the cluster", "a, 01234567", "a, abcdefgh"]);
  const ended = { ...UNKNOWN, past: { ended: "2026-01-01T00:00:00Z", deleted: null } as Past };
  expect(labels(["team/a"], ["team/a/u"], new Map([["team/a/u", ended]]))[1]).toMatch(/^a, ended /);
});

test.each([
  [{ state: "Complete", created: "2026-01-01T00:00:00Z", started: "2026-01-01T00:01:00Z", ended: "2026-01-01T00:02:00Z" }, 60],
  [{ state: "Running", created: "2026-01-01T00:00:00Z", started: "2026-01-01T00:01:00Z", ended: null }, null],
])("%j took %s seconds", (row, seconds) => {
  const side = { ...NOTHING, row: row as Row & { started: string | null } };
  expect(trainingsOf(["a/b"], [side], [], new Map(), new Map())[0]!.seconds).toBe(seconds);
});
