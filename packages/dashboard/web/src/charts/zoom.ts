// The part of a chart that is in view, and how keys and buttons change it.

export interface Range {
  min: number;
  max: number;
}

export type Zoom = "in" | "out" | "left" | "right" | "all";

/** A step to the side, as a share of what is in view. */
const STEP = 0.25;
/** The least share of all that can be in view: one of a million. */
const LEAST = 1e-6;

const KEYS: ReadonlyMap<string, Zoom> = new Map([
  ["+", "in"],
  ["=", "in"],
  ["-", "out"],
  ["ArrowLeft", "left"],
  ["ArrowRight", "right"],
  ["0", "all"],
  ["Escape", "all"],
]);

/** What a key does to a chart; with a modifier it is for the browser. */
export function zoomOf(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): Zoom | undefined {
  return event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS.get(event.key);
}

/** From the first sample to the last; null without two different ones. */
export function wholeOf(x: ArrayLike<number>): Range | null {
  const min = x[0];
  const max = x[x.length - 1];
  return min !== undefined && max !== undefined && min < max ? { min, max } : null;
}

/** What is in view next: half or twice as much around the same middle, or as much to the side, never beyond the ends. */
export function zoomed(view: Range, whole: Range, zoom: Zoom): Range {
  if (zoom === "all") return whole;
  const width = view.max - view.min;
  const shift = zoom === "left" ? -width * STEP : zoom === "right" ? width * STEP : 0;
  const factor = zoom === "in" ? 0.5 : zoom === "out" ? 2 : 1;
  const all = whole.max - whole.min;
  const next = Math.min(Math.max(width * factor, all * LEAST), all);
  const min = Math.min(Math.max((view.min + view.max) / 2 + shift - next / 2, whole.min), whole.max - next);
  return { min, max: min + next };
}

/** Whether only a part of the samples is in view. */
export function isZoomed({ min, max }: { min?: number | null; max?: number | null }, x: ArrayLike<number>): boolean {
  if (min == null || max == null || x.length === 0) return false;
  return min > x[0]! || max < x[x.length - 1]!;
}

/** Whether a sample is in view; samples are in order. */
export function hasSample(x: ArrayLike<number>, { min, max }: Range): boolean {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle]! < min) low = middle + 1;
    else high = middle;
  }
  return low < x.length && x[low]! <= max;
}
