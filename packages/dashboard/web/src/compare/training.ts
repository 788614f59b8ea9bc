// The trainings that are compared: those of the cluster, and those of the history, as one kind.

import { TONES } from "../charts/curves";
import { minute } from "../format";
import { endOf } from "../history/parts";
import { ENDED, type Past, type Points, type Recipe, type Row } from "../model";
import { jobPath, pastPath } from "../route";
import { type PastSide, UNKNOWN } from "./past";
import { NOTHING, type Side } from "./store";

export interface Training {
  /** `NAMESPACE/NAME`, and of the history with `/UID`. */
  id: string;
  namespace: string;
  name: string;
  /** What tells it from the others. */
  label: string;
  /** Its page. */
  path: string;
  tone: number;
  row: Row | null;
  past: Past | null;
  /** Null before it is known. */
  recipe: Recipe | null;
  curves: ReadonlyMap<string, Points>;
  /** How long it ran; null while it does, or did not begin. */
  seconds: number | null;
  isGone: boolean;
  /** Why there are no metrics. */
  trouble: string;
}

/** The colours of trainings: one keeps its colour while others come and go. */
export function tones(before: ReadonlyMap<string, number>, ids: readonly string[]): Map<string, number> {
  const kept = new Map(ids.flatMap((id) => (before.has(id) ? [[id, before.get(id)!] as const] : [])));
  const taken = new Set(kept.values());
  let next = 0;
  for (const id of ids) {
    if (kept.has(id)) continue;
    while (taken.has(next)) next++;
    taken.add(next);
    kept.set(id, next);
  }
  return kept;
}

export function trainingsOf(
  jobs: readonly string[],
  sides: readonly Side[],
  past: readonly string[],
  pastSides: ReadonlyMap<string, PastSide>,
  colours: ReadonlyMap<string, number>,
): Training[] {
  const all = [
    ...jobs.map((id, index) => liveTraining(id, sides[index] ?? NOTHING)),
    ...past.map((id) => pastTraining(id, pastSides.get(id) ?? UNKNOWN)),
  ];
  return labelled(all).map((each) => ({ ...each, tone: (colours.get(each.id) ?? 0) % TONES }));
}

type Unlabelled = Omit<Training, "label" | "tone">;

function liveTraining(id: string, { row, recipe, curves, trouble, isGone }: Side): Unlabelled {
  const [namespace = "", name = ""] = id.split("/");
  const seconds = row && ENDED.has(row.state) ? between(row.started ?? row.created, row.ended) : null;
  return { id, namespace, name, path: jobPath(namespace, name), row, past: null, recipe, curves, seconds, isGone, trouble };
}

function pastTraining(id: string, { past, recipe, curves, trouble }: PastSide): Unlabelled {
  const [namespace = "", name = "", uid = ""] = id.split("/").map(decodeURIComponent);
  return { id, namespace, name, path: pastPath({ namespace, name, uid }), row: null, past, recipe, curves, seconds: past?.seconds ?? null, isGone: false, trouble };
}

function between(from: string | null, to: string | null): number | null {
  const seconds = (Date.parse(to ?? "") - Date.parse(from ?? "")) / 1000;
  return Number.isFinite(seconds) ? seconds : null;
}

/** Names, with their namespaces where these differ, and of the history with the time of the end where a name occurs again. */
function labelled(all: readonly Unlabelled[]): Omit<Training, "tone">[] {
  const hasOne = new Set(all.map(({ namespace }) => namespace)).size <= 1;
  const texts = all.map(({ namespace, name }) => (hasOne ? name : `${namespace}/${name}`));
  const isTwice = (text: string) => texts.indexOf(text) !== texts.lastIndexOf(text);
  const longer = all.map((each, index) => {
    const text = texts[index]!;
    const end = each.past ? minute(endOf(each.past)) : "";
    return isTwice(text) && end ? `${text}, ended ${end}` : text;
  });
  const isStillTwice = (text: string) => longer.indexOf(text) !== longer.lastIndexOf(text);
  return all.map((each, index) => {
    const text = longer[index]!;
    return { ...each, label: isStillTwice(text) ? `${text}, ${each.id.split("/")[2]?.slice(0, 8) ?? "on the cluster"}` : text };
  });
}
