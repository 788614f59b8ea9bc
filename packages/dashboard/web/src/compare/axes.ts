// The axes of parallel coordinates: where the value of each training is, and which trainings are kept.

import { short } from "../format";
import type { Field } from "./fields";
import { compareTexts, numberOf } from "./numbers";
import type { Metric, Statistic } from "./results";
import type { Kept } from "./view";

/** What stands for a parameter that is not set. */
export const NOT_SET = "not set";

export interface ParallelAxis {
  key: string;
  title: string;
  /** What is said below the title: of an evaluation, or a logarithmic scale. */
  kind: string;
  isResult: boolean;
  /** Texts with their places, from 0 at the bottom to 1. */
  ticks: readonly [text: string, at: number][];
  /** The place of each training; null where it has no value. */
  places: readonly (number | null)[];
  /** What is kept when the places between two are. */
  kept(from: number, to: number): Kept;
  /** The places that are kept; null where they are none of this axis. */
  span(kept: Kept): [from: number, to: number] | null;
  fits(index: number, kept: Kept): boolean;
  /** How far a key moves an end of what is kept. */
  step: number;
}

/** Values that an axis names one by one. */
const MOST_NAMED = 7;
const MOST_CATEGORIES = 24;
/** Texts that do not cover each other along an axis. */
const MOST_TEXTS = 16;
/** How often the least number must be in the greatest for a logarithmic scale. */
const WIDE = 50;
const MOST = 14;
/** What rounding may move a number along an axis: its ends are within what is kept up to them. */
const NEARLY = 1e-4;
const NUMERIC_STEP = 0.05;

export function axesOf(fields: readonly Field[], metrics: readonly Metric[], statistic: Statistic): ParallelAxis[] {
  const results = metrics.flatMap((metric) => {
    const numbers = metric.values.map((value) => (value && Number.isFinite(value[statistic]) ? value[statistic] : null));
    const kind = metric.isEval ? "evaluation" : "";
    return new Set(numbers.filter((each) => each !== null)).size > 1 ? [numericAxis(metric.key, metric.title, numbers, { isResult: true, kind })] : [];
  });
  const parameters = fields.flatMap((field) => fieldAxis(field) ?? []);
  return [...parameters.slice(0, Math.max(MOST - results.length, 4)), ...results].slice(0, MOST);
}

/** The axis of what trainings were started with; null where that says nothing. */
export function fieldAxis({ key, title, values }: Field): ParallelAxis | null {
  const texts = values.filter((each) => each !== null);
  const numbers = values.map((each) => (each === null ? null : numberOf(each)));
  const there = numbers.filter((each) => each !== null);
  if (there.length === texts.length && new Set(there).size > 1) return numericAxis(key, title, numbers, { isResult: false, kind: "" });
  const categories = [...new Set(values.map((each) => each ?? NOT_SET))].sort((a, b) => compareTexts(a === NOT_SET ? null : a, b === NOT_SET ? null : b)).reverse();
  // A value of its own for each, such as the directory of the output, says nothing.
  const saysNothing = categories.length > MOST_NAMED && new Set(texts).size === texts.length;
  return categories.length > MOST_CATEGORIES || saysNothing ? null : categoryAxis(key, title, values, categories);
}

/** An axis of texts, the first of them at the bottom. */
export function categoryAxis(key: string, title: string, values: Field["values"], categories: readonly string[]): ParallelAxis {
  const at = (category: string) => (categories.length === 1 ? 0.5 : categories.indexOf(category) / (categories.length - 1));
  const every = Math.ceil(categories.length / MOST_TEXTS);
  return {
    key,
    title,
    kind: "",
    isResult: false,
    ticks: categories.filter((_, index) => index % every === 0).map((each) => [each, at(each)]),
    places: values.map((each) => at(each ?? NOT_SET)),
    kept: (from, to) => ({ key, values: categories.filter((each) => at(each) >= from && at(each) <= to) }),
    span(kept) {
      if (!("values" in kept)) return null;
      const places = kept.values.filter((each) => categories.includes(each)).map(at);
      const half = Math.min(0.35 / Math.max(categories.length - 1, 1), 0.06);
      return places.length > 0 ? [Math.min(...places) - half, Math.max(...places) + half] : null;
    },
    fits: (index, kept) => !("values" in kept) || kept.values.includes(values[index] ?? NOT_SET),
    step: 1 / Math.max(categories.length - 1, 1),
  };
}

interface Scale extends Pick<ParallelAxis, "isResult" | "kind"> {
  /** Default: where the numbers differ much. */
  isLog?: boolean;
  /** What the axis has at least, whatever the numbers are. */
  bounds?: readonly number[];
}

/** An axis of numbers, of which there must be one, or bounds. */
export function numericAxis(key: string, title: string, numbers: readonly (number | null)[], { isResult, kind, isLog: wanted, bounds = [] }: Scale): ParallelAxis {
  const there = numbers.filter((each) => each !== null);
  const [least, greatest] = [Math.min(...there, ...bounds), Math.max(...there, ...bounds)];
  const isLog = least > 0 && (wanted ?? greatest / least >= WIDE);
  const scale = isLog ? Math.log : (value: number) => value;
  const back = isLog ? Math.exp : (value: number) => value;
  const width = scale(greatest) - scale(least);
  const at = (value: number) => (width === 0 ? 0.5 : (scale(value) - scale(least)) / width);
  const distinct = [...new Set(there)].sort((a, b) => a - b);
  const isNamed = least === greatest || (bounds.length === 0 && distinct.length <= MOST_NAMED && apart(distinct.map(at)));
  const named = isNamed ? [...new Set([...distinct, least])].sort((a, b) => a - b) : ticksOf(least, greatest, isLog);
  return {
    key,
    title,
    kind: [kind, isLog ? "log" : ""].filter(Boolean).join(", "),
    isResult,
    ticks: named.map((value) => [short(value), at(value)]),
    places: numbers.map((each) => (each === null ? null : at(each))),
    kept: (from, to) => ({ key, low: rounded(back(scale(least) + from * width)), high: rounded(back(scale(least) + to * width)) }),
    span: (kept) => ("values" in kept ? null : [Math.max(at(kept.low), 0), Math.min(at(kept.high), 1)]),
    fits(index, kept) {
      if ("values" in kept) return true;
      const value = numbers[index] ?? null;
      return value !== null && at(value) >= at(kept.low) - NEARLY && at(value) <= at(kept.high) + NEARLY;
    },
    step: NUMERIC_STEP,
  };
}

/** A number of an address, which nobody wants to read with 17 digits. */
function rounded(value: number): number {
  return Number(value.toPrecision(6));
}

function apart(places: readonly number[]): boolean {
  return places.every((place, index) => index === 0 || place - places[index - 1]! > 0.06);
}

/** Round numbers between two: powers of ten where the scale is logarithmic, else some five at equal distances; and the two themselves. */
export function ticksOf(least: number, greatest: number, isLog: boolean): number[] {
  const round: number[] = [];
  if (isLog) {
    for (let power = Math.ceil(Math.log10(least) - 1e-9); power <= Math.log10(greatest) + 1e-9; power++) round.push(10 ** power);
    const every = Math.ceil(round.length / MOST_NAMED);
    return round.length > 1 ? round.filter((_, index) => index % every === 0) : [least, greatest];
  }
  const rough = (greatest - least) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? rough;
  const first = Math.ceil(least / step);
  for (let count = 0; count < 10 && (first + count) * step <= greatest; count++) round.push(Number(((first + count) * step).toPrecision(12)));
  return round.length > 1 ? round : [least, greatest];
}

/** A part of an axis as people read it. */
export function keptText(kept: Kept): string {
  if ("values" in kept) return kept.values.join(", ");
  return `${short(kept.low)} to ${short(kept.high)}`;
}
