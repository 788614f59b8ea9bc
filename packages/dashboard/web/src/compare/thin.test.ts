import { expect, test } from "vitest";
import type { Line } from "../charts/curves";
import type { Points } from "../model";
import { thinned } from "./thin";

function line(count: number): Line {
  const values = Array.from({ length: count }, (_, index) => index);
  return { id: String(count), label: "", tone: 0, points: { kind: "train", name: "loss", times: values, steps: values, hasSteps: true, values } satisfies Points };
}

test("many samples become few, the same ones each time, with the last", () => {
  const lines = [line(4000), line(4000), line(10)];
  const drawn = thinned(lines, 2003);
  expect(drawn.map(({ points }) => points.values.length)).toEqual([1001, 1001, 10]);
  expect(drawn[0]!.points.steps.at(-1)).toBe(3999);
  expect(thinned(lines, 2003)[0]!.points).toBe(drawn[0]!.points);
  expect(thinned(lines, 8010).map(({ points }) => points)).toEqual(lines.map(({ points }) => points));
});
