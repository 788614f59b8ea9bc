// What the command palette offers: pages, what can be done here, and TrainJobs.

import { id } from "../list/filters";
import type { Row } from "../model";
import { searched } from "../search";

export interface Entry {
  /** Unique among all entries. */
  key: string;
  group: "TrainJobs" | "Pages" | "Actions";
  title: string;
  /** Shown beside it, and searched as well. */
  detail: string;
  run(): void;
}

export const OFFERED = 50;

/** Entries with all words of the search; those whose title begins with it come first. */
export function matching(entries: readonly Entry[], search: string): Entry[] {
  const text = search.trim().toLowerCase();
  const has = searched(text);
  const found = entries.filter(({ title, detail }) => has(`${title} ${detail}`));
  const rank = ({ title }: Entry) => (text && title.toLowerCase().startsWith(text) ? 0 : 1);
  const ranked = text ? found.map((each, at) => [rank(each), at, each] as const).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, , each]) => each) : found;
  const groups: Entry["group"][] = text ? ["TrainJobs", "Pages", "Actions"] : ["Pages", "Actions", "TrainJobs"];
  return groups.flatMap((group) => ranked.filter((each) => each.group === group).slice(0, OFFERED));
}

/** The TrainJobs as entries, the newest first. */
export function trainJobs(rows: Iterable<Row>, open: (row: Row) => void): Entry[] {
  const newest = [...rows].sort((a, b) => ((a.created ?? "") < (b.created ?? "") ? 1 : -1));
  return newest.map((row) => ({
    key: `job ${id(row)}`,
    group: "TrainJobs",
    title: row.name,
    detail: `${row.namespace} ${row.state}`,
    run: () => open(row),
  }));
}
