// The order of trainings in the table.

import type { Field } from "./fields";
import { compareTexts } from "./numbers";
import type { Metric } from "./results";
import type { Training } from "./training";
import type { CompareView } from "./view";

type Compare = (a: number, b: number) => number;

/** The places of trainings, sorted; what has no value is last in both directions. */
export function ordered(
  places: readonly number[],
  trainings: readonly Training[],
  fields: readonly Field[],
  metrics: readonly Metric[],
  { sort, isReversed, statistic }: Pick<CompareView, "sort" | "isReversed" | "statistic">,
): number[] {
  const field = fields.find(({ key }) => key === sort);
  const metric = metrics.find(({ key }) => key === sort);
  const numbers = (value: (index: number) => number | null | undefined): Compare => missingLast(value, (a, b) => a - b, isReversed);
  let compare: Compare | null = null;
  if (field) compare = missingLast((index) => field.values[index], compareTexts, isReversed);
  else if (metric) compare = numbers((index) => finite(metric.values[index]?.[statistic]));
  else if (sort === "took") compare = numbers((index) => trainings[index]!.seconds);
  else if (sort === "name") compare = missingLast((index) => trainings[index]!.label, compareTexts, isReversed);
  return compare ? [...places].sort(compare) : [...places];
}

function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}

function missingLast<T>(value: (index: number) => T | null | undefined, compare: (a: T, b: T) => number, isReversed: boolean): Compare {
  return (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x == null || y == null) return Number(x == null) - Number(y == null);
    return isReversed ? compare(y, x) : compare(x, y);
  };
}
