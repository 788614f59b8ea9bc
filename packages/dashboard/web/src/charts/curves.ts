// The curves of one chart, as the library that draws them takes them.

import type { Points } from "../model";
import { familyOf } from "./family";
import type { ChartOptions } from "./options";

/** How many colours the theme has for curves. */
export const TONES = 20;

/** One curve: a metric of a TrainJob. */
export interface Line {
  id: string;
  label: string;
  points: Points;
  /** Which colour it has. */
  tone: number;
  /** The token of another colour. */
  color?: string;
  /** Whether it stands back unless somebody points at it. */
  isFaint?: boolean;
}

/** Lines by the quantity that they show, so that training and evaluation, and several TrainJobs, share a chart. */
export function byMetric(lines: readonly Line[]): [name: string, lines: Line[]][] {
  const found = new Map<string, Line[]>();
  for (const line of lines) {
    const { name } = familyOf(line.points);
    const others = found.get(name);
    if (others) others.push(line);
    else found.set(name, [line]);
  }
  return [...found];
}

export type Count = "step" | "epoch";
export type Axis = Count | "time" | "elapsed";

/** Steps if wanted, else epochs, where all lines have them; else time, from the first sample if several TrainJobs are compared. */
export function axisOf(lines: readonly Line[], options: Pick<ChartOptions, "axis">, isCompared: boolean): Axis {
  const counts = new Set(options.axis === "step" ? lines.map(({ points }) => countOf(points)) : []);
  const [count] = counts;
  if (count && counts.size === 1) return count;
  return isCompared ? "elapsed" : "time";
}

/** What there is to choose beside time: steps if some metric has them, else epochs; null for nothing. */
export function choiceOf(lines: readonly Line[]): Count | null {
  const counts = lines.map(({ points }) => countOf(points));
  return counts.includes("step") ? "step" : counts.includes("epoch") ? "epoch" : null;
}

/** Steps of all samples that do not go back, or epochs with one sample each: several would stand on top of each other. */
function countOf({ steps, hasSteps }: Points): Count | null {
  const least = hasSteps ? 0 : 1;
  const isCounted = steps.every((step, index) => step >= 0 && (index === 0 || step - steps[index - 1]! >= least));
  return isCounted ? (hasSteps ? "step" : "epoch") : null;
}

export function horizontal({ steps, times }: Points, axis: Axis): number[] {
  if (axis === "step" || axis === "epoch") return steps;
  if (axis === "time") return times;
  const first = times[0] ?? 0;
  return times.map((time) => time - first);
}

/** An exponential moving average which is not drawn to zero at its beginning. */
export function smooth(values: readonly number[], weight: number): number[] {
  let sum = 0;
  let scale = 0;
  return values.map((value) => {
    if (!Number.isFinite(value)) return value;
    sum = weight * sum + (1 - weight) * value;
    scale = weight * scale + (1 - weight);
    return sum / scale;
  });
}

export type Values = (number | null)[];

/** What can be drawn: finite values, and on a logarithmic scale those above zero. */
export function drawable(values: readonly number[], isLog: boolean): Values {
  return values.map((value) => (Number.isFinite(value) && (!isLog || value > 0) ? value : null));
}

export function canBeLogarithmic(lines: readonly Line[]): boolean {
  return lines.some(({ points }) => points.values.some((value) => value > 0));
}

interface Extent {
  least: number | undefined;
  greatest: number | undefined;
}

export function extent(values: readonly number[]): Extent {
  let least: number | undefined;
  let greatest: number | undefined;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (least === undefined || value < least) least = value;
    if (greatest === undefined || value > greatest) greatest = value;
  }
  return { least, greatest };
}

/** The tables of a chart, each with its own x: of each line the values, and behind them the smoothed ones if wanted. */
export function tables(lines: readonly Line[], axis: Axis, { isLog, smoothing }: Pick<ChartOptions, "isLog" | "smoothing">): [number[], ...Values[]][] {
  return lines.map(({ points }) => {
    const columns: Values[] = [drawable(points.values, isLog)];
    if (smoothing) columns.push(drawable(smooth(points.values, smoothing), isLog));
    return [horizontal(points, axis), ...columns];
  });
}
