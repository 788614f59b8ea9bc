// What came out of trainings: of each metric the last, least and greatest value, and which of them is the best.

import { familyOf } from "../charts/family";
import { extent } from "../charts/curves";
import type { Points } from "../model";
import type { Training } from "./training";

export const STATISTICS = ["last", "min", "max"] as const;
export type Statistic = (typeof STATISTICS)[number];

export type Result = Record<Statistic, number>;

export interface Metric {
  /** Names it in the address. */
  key: string;
  title: string;
  isEval: boolean;
  /** Which values are better; null where nobody can tell by the name. */
  better: "less" | "more" | null;
  /** Of each training; null where it has none. */
  values: readonly (Result | null)[];
}

const BEFORE = "(^|[\\d_./ -])";
const BEHIND = "($|[\\d_./@ -])";
const LESS = new RegExp(`${BEFORE}(loss|nll|cross_?entropy|entropy|objective|perplexity|ppl|m?error|err|r?mse|mae|wer|cer|fid|m?logloss|bpb|bpc)${BEHIND}`, "i");
const MORE = new RegExp(
  `${BEFORE}(acc|accuracy|top_?\\d+|f1|auc|auroc|map|m?iou|dice|bleu|rouge\\w*|rewards?|return|score|precision|recall|r2|psnr|ssim|throughput|mfu|\\w*per_second)${BEHIND}`,
  "i",
);
const MACHINERY = /(^|[_./ -])(lr|learning_?rate|grad_?norm|runtime|time|seconds|\w*per_second|flos|flops|memory|mem|throughput|mfu|tokens\w*|step|epoch|gpu\w*)($|[_./ -])/i;

export function betterOf(name: string): Metric["better"] {
  if (MORE.test(name)) return "more";
  return LESS.test(name) ? "less" : null;
}

const known = new WeakMap<Points, Result>();

function resultOf(points: Points): Result {
  const before = known.get(points);
  if (before) return before;
  const { least = NaN, greatest = NaN } = extent(points.values);
  const result = { last: points.values.at(-1) ?? NaN, min: least, max: greatest };
  known.set(points, result);
  return result;
}

/** The metrics of the trainings, those first that people look at: what has a direction before what has none, machinery last. */
export function metricsOf(trainings: readonly Training[]): Metric[] {
  const found = new Map<string, { name: string; isEval: boolean; of: Map<string, Result> }>();
  for (const { id, curves } of trainings) {
    for (const points of curves.values()) {
      if (points.values.length === 0) continue;
      const { name, side } = familyOf(points);
      const key = `${side === "eval" ? "e" : "t"}:${name}`;
      const metric = found.get(key) ?? { name, isEval: side === "eval", of: new Map<string, Result>() };
      found.set(key, metric);
      if (!metric.of.has(id)) metric.of.set(id, resultOf(points));
    }
  }
  const rank = (name: string) => (MACHINERY.test(name) ? 2 : betterOf(name) === null ? 1 : 0);
  return [...found]
    .map(([key, { name, isEval, of }]): Metric => ({
      key: `m${key}`,
      title: name,
      isEval,
      better: betterOf(name),
      values: trainings.map(({ id }) => of.get(id) ?? null),
    }))
    .sort((a, b) => rank(a.title) - rank(b.title));
}

/** The metrics that are shown at first: some of those with a direction, and where there is none the first ones. */
export function firstOf(metrics: readonly Metric[]): Metric[] {
  const directed = metrics.filter(({ title, better }) => better !== null && !MACHINERY.test(title));
  return directed.length > 0 ? directed.slice(0, 4) : metrics.slice(0, 2);
}

/** The best value of those that are shown; null where nobody can tell, or there is nothing to choose from. */
export function bestOf({ values, better }: Metric, statistic: Statistic, isShown: (index: number) => boolean): number | null {
  if (better === null) return null;
  const numbers = values.flatMap((value, index) => (value && isShown(index) && Number.isFinite(value[statistic]) ? [value[statistic]] : []));
  if (numbers.length < 2) return null;
  const { least, greatest } = extent(numbers);
  return least === greatest ? null : ((better === "less" ? least : greatest) ?? null);
}
