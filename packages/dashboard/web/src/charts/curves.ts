// The curves of one chart, as the library that draws them takes them.

import type { Points } from "../model";
import { familyOf } from "./family";
import type { ChartOptions } from "./options";

/** One curve: a metric of a TrainJob. */
export interface Line {
  id: string;
  label: string;
  points: Points;
  /** Which colour it has. */
  tone: number;
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

export type Axis = "step" | "time" | "elapsed";

/** Steps if wanted, where all samples have one and they do not go back; else time, from the first sample if several TrainJobs are compared. */
export function axisOf(lines: readonly Line[], options: Pick<ChartOptions, "axis">, isCompared: boolean): Axis {
  if (options.axis === "step" && lines.every(({ points }) => hasSteps(points))) return "step";
  return isCompared ? "elapsed" : "time";
}

/** Whether there are steps to choose beside time. */
export function isCounted(lines: readonly Line[]): boolean {
  return lines.some(({ points }) => hasSteps(points));
}

function hasSteps({ steps }: Points): boolean {
  return steps.every((step, index) => step >= 0 && (index === 0 || step >= steps[index - 1]!));
}

export function horizontal({ steps, times }: Points, axis: Axis): number[] {
  if (axis === "step") return steps;
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
