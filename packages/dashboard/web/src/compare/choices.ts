// What can be compared: TrainJobs of the cluster, and trainings of the history that the cluster has forgotten.

import { minute, short } from "../format";
import { endOf } from "../history/parts";
import { id } from "../list/filters";
import type { Past, Row } from "../model";
import { pastId } from "../route";
import { searched } from "../search";

export interface Choice {
  /** As the address has it. */
  id: string;
  namespace: string;
  name: string;
  state: string;
  /** What tells it from others: a metric, its runtime. */
  detail: string;
  /** When it was made or ended, as people read it. */
  when: string;
}

/** TrainJobs with all words that are looked for: some that come first, and then the newest. */
export function liveChoices(rows: Iterable<Row>, search: string, first: ReadonlySet<string>): Choice[] {
  const has = searched(search);
  return [...rows]
    .filter((row) => has([row.namespace, row.name, row.state, row.runtime, row.owner, ...Object.entries(row.labels ?? {}).flat()].join(" ")))
    .sort((a, b) => Number(first.has(id(b))) - Number(first.has(id(a))) || (b.created ?? "").localeCompare(a.created ?? "") || (id(a) < id(b) ? -1 : 1))
    .map((row) => ({
      id: id(row),
      namespace: row.namespace,
      name: row.name,
      state: row.state,
      detail: row.metric ? `${row.metric.isEval ? "evaluation " : ""}${row.metric.name} ${short(row.metric.trend.at(-1))}` : row.runtime,
      when: minute(row.created),
    }));
}

/** Trainings of the history that are not among the TrainJobs of the cluster. */
export function pastChoices(trainings: readonly Past[], rows: Iterable<Row>): Choice[] {
  const live = new Set([...rows].map(({ uid }) => uid));
  return trainings
    .filter(({ uid }) => !live.has(uid))
    .map((past) => ({
      id: pastId(past),
      namespace: past.namespace,
      name: past.name,
      state: past.ended ? past.state : past.deleted ? "Stopped" : past.state,
      detail: past.metric ? `${past.metric.isEval ? "evaluation " : ""}${past.metric.name} ${short(Number(past.metric.value)) || past.metric.value}` : past.runtime,
      when: minute(endOf(past) ?? past.created),
    }));
}
