// The table of a comparison as CSV, with all that a screen has no room for.

import { csvText } from "../charts/arrangement";
import type { Field } from "./fields";
import { type Metric, STATISTICS } from "./results";
import type { Training } from "./training";

/** A training in a row, in the order of the table: every metric with its three values, and every parameter, also those that are the same in all. */
export function tableCsv(trainings: readonly Training[], order: readonly number[], metrics: readonly Metric[], fields: readonly Field[]): string {
  const heads = metrics.flatMap(({ title, isEval }) => STATISTICS.map((each) => `${isEval ? "evaluation " : ""}${title} ${each}`));
  const rows = order.map((index) => {
    const { namespace, name, row, past, seconds } = trainings[index]!;
    const results = metrics.flatMap(({ values }) => STATISTICS.map((each) => (values[index] ? String(values[index][each]) : "")));
    const state = row?.state ?? past?.state ?? "";
    return [namespace, name, state, seconds === null ? "" : String(seconds), ...results, ...fields.map(({ values }) => values[index] ?? "")];
  });
  return csvText([["namespace", "name", "state", "seconds", ...heads, ...fields.map(({ title }) => title)], ...rows]);
}
