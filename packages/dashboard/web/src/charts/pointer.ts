// What a chart says about its lines where the pointer is, and which of them stand out.

import type uPlot from "uplot";
import { duration, short } from "../format";
import type { Axis, Line } from "./curves";
import { familyOf } from "./family";

/** The training that is pointed at, in whichever part of the page: all parts show it, and let the others stand back. */
export interface Highlight {
  /** Its label; "" for none. */
  label: string;
  set(label: string): void;
}

/** Lines whose values are all said and marked where the pointer is. */
export const ALL_SAID = 4;
/** How opaque a line is that stands back. */
const BACK = 0.14;
const FAINT = 0.38;
/** How far from the pointer a line may be, in pixels. */
const NEAR = 40;
/** How many samples beside the pointer are asked for one, as lines may have different steps. */
const BESIDE = 200;

/** A place on an axis, as text. */
export function position(x: number, axis: Axis): string {
  if (axis === "step" || axis === "epoch") return `${axis} ${Math.round(x)}`;
  return axis === "elapsed" ? duration(x) : new Date(x * 1000).toLocaleTimeString();
}

/** How opaque the raw line is behind a smooth one: behind many it would only hide them. */
export function rawOpacity(lines: number): number {
  return lines <= 4 ? 0.3 : lines <= 12 ? 0.16 : 0.05;
}

/** How opaque a line is while nobody points at one. */
export function opacity(line: Pick<Line, "isFaint"> | undefined): number {
  return line?.isFaint ? FAINT : 1;
}

/** Have the lines of a training stand out; "" has none. */
export function raise(plot: uPlot, lines: readonly Line[], label: string, isSmooth: boolean): void {
  const raw = rawOpacity(lines.length);
  plot.series.forEach((series, index) => {
    if (index === 0) return;
    const line = lines[isSmooth ? (index - 1) >> 1 : index - 1];
    const isRaw = isSmooth && index % 2 === 1;
    const isBack = label !== "" && line?.label !== label;
    const isRaised = label !== "" && !isBack;
    const usual = opacity(line);
    series.alpha = isBack ? (isRaw ? 0 : BACK * usual) : isRaised ? (isRaw ? rawOpacity(1) : 1) : isRaw ? raw * usual : usual;
    series.width = isRaw ? 1 : isRaised ? 2.5 : 1.5;
  });
  plot.redraw(false);
}

/** The training of the line that is nearest to the pointer; "" where none is near. */
export function nearest(plot: uPlot, lines: readonly Line[], isSmooth: boolean): string {
  const { idx, top } = plot.cursor;
  let found = "";
  let least = NEAR;
  if (idx == null || top == null || top < 0) return found;
  lines.forEach(({ label }, number) => {
    const value = beside(plot.data[isSmooth ? 2 * number + 2 : number + 1]!, idx);
    const distance = value === null ? Infinity : Math.abs(plot.valToPos(value, "y") - top);
    if (distance < least) [least, found] = [distance, label];
  });
  return found;
}

function beside(values: ArrayLike<number | null | undefined>, at: number): number | null {
  for (let away = 0; away <= BESIDE; away++) {
    const found = values[at - away] ?? values[at + away];
    if (found != null) return found;
  }
  return null;
}

/** The values under the pointer, as text: of all lines where they are few, else of the training that is pointed at. */
export function pointed(plot: uPlot, lines: readonly Line[], axis: Axis, isSmooth: boolean, label = ""): string {
  const index = plot.cursor.idx;
  const x = index == null ? undefined : plot.data[0][index];
  if (index == null || x === undefined) return "";
  const isMany = lines.length > ALL_SAID;
  const values = lines.flatMap((line, number) => {
    if (isMany && line.label !== label) return [];
    const column = plot.data[isSmooth ? 2 * number + 1 : number + 1]!;
    const value = isMany ? beside(column, index) : column[index];
    return value == null ? [] : [named(line, value)];
  });
  return values.length > 0 ? `${position(x, axis)}: ${values.join(", ")}` : position(x, axis);
}

function named({ label, points }: Line, value: number): string {
  return [label, familyOf(points).side === "eval" ? "evaluation" : "", short(value)].filter(Boolean).join(" ");
}
