// Fewer samples of many long curves: a screen shows no more, and charts join all of them into one table.

import type { Line } from "../charts/curves";
import type { Points } from "../model";

/** Samples of all lines together that are drawn. */
const MOST = 400_000;
const LEAST_OF_ONE = 1000;

const known = new WeakMap<Points, { every: number; points: Points }>();

/** The lines, with every second, third ... sample where there are too many; the last one stays. */
export function thinned(lines: readonly Line[], most = MOST): Line[] {
  const all = lines.reduce((sum, { points }) => sum + points.values.length, 0);
  const every = Math.ceil(all / most);
  if (every <= 1) return [...lines];
  return lines.map((line) => ({ ...line, points: everyOf(line.points, every) }));
}

function everyOf(points: Points, every: number): Points {
  const count = points.values.length;
  if (count <= LEAST_OF_ONE) return points;
  const before = known.get(points);
  if (before?.every === every) return before.points;
  const pick = (_: number, index: number) => index % every === 0 || index === count - 1;
  const fewer = { ...points, times: points.times.filter(pick), steps: points.steps.filter(pick), values: points.values.filter(pick) };
  known.set(points, { every, points: fewer });
  return fewer;
}
