// Which charts are shown, and in which order.

import type { Line } from "./curves";
import type { ChartOptions } from "./options";

export type Named = [name: string, lines: Line[]];

/** Pinned ones first, in the order of their pins; the rest as reported or by name. Only those with the text that is looked for. */
export function arranged(charts: readonly Named[], { pins, order, search }: Pick<ChartOptions, "pins" | "order" | "search">): Named[] {
  const wanted = search.trim().toLowerCase();
  const found = charts.filter(([name, lines]) => [name, ...lines.map(({ points }) => points.name)].some((each) => each.toLowerCase().includes(wanted)));
  if (order === "name") found.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const rank = ([name]: Named) => (pins.includes(name) ? pins.indexOf(name) : pins.length);
  return found.sort((a, b) => rank(a) - rank(b));
}

/** Charts with something to draw, and the values that stand alone. */
export function separated(charts: readonly Named[]): { drawn: Named[]; single: Line[] } {
  const drawn = charts.filter(([, lines]) => lines.some(({ points }) => points.values.length > 1));
  const single = charts.filter((chart) => !drawn.includes(chart)).flatMap(([, lines]) => lines);
  return { drawn, single };
}

const QUOTED = /[",\n\r]/;

/** The samples as CSV, one in a row; a cell that a spreadsheet would compute has an apostrophe in front. */
export function csvOf(lines: readonly Line[]): string {
  const rows = lines.flatMap(({ label, points }) =>
    points.values.map((value, index) => {
      const count = points.steps[index]! >= 0 ? String(points.steps[index]) : "";
      const counts = points.hasSteps ? [count, ""] : ["", count];
      return [label, points.kind, points.name, ...counts, new Date(points.times[index]! * 1000).toISOString(), String(value)];
    }),
  );
  return csvText([["training", "kind", "metric", "step", "epoch", "time", "value"], ...rows]);
}

/** Rows of texts as CSV, see `csvOf`. */
export function csvText(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

const NUMBER = /^-?(\d+(\.\d+)?(e[+-]?\d+)?|Infinity)$/;
/** Where a cell begins, also in a spreadsheet that takes semicolons or tabs for what is between cells, as in much of Europe. */
const FORMULA = /(^|[;\t\r\n])(["'\s]*)(?=[=@+\uff1d\uff20\uff0b\uff0d-])/g;

function cell(text: string): string {
  const safe = NUMBER.test(text) ? text : text.replace(/^(?=[\t\r\n])/, "'").replace(FORMULA, "$1$2'");
  return QUOTED.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** What a file with a metric is called. */
export function fileName(name: string, ending: string): string {
  return `${name.replace(/[^\w.-]+/g, "-").slice(0, 80) || "metric"}.${ending}`;
}
