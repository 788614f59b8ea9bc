// Metrics that belong together: the same quantity of training and of evaluation.

import type { Points } from "../model";

export type Side = "train" | "eval";

const SIDES = "train(?:ing)?|val(?:id|idation)?|eval(?:uation)?|test|dev";
const BEFORE = new RegExp(`^(${SIDES})(?:_?\\d+)?[/_.:\\s-]+(.+)$`, "i");
const BEHIND = new RegExp(`^(.+?)[/_.:\\s-]+(${SIDES})$`, "i");

/** The quantity, and of what: `val_loss`, `eval/loss` and `loss` of an evaluation are the loss of the evaluation. */
export function familyOf({ kind, name }: Pick<Points, "kind" | "name">): { name: string; side: Side } {
  const before = BEFORE.exec(name);
  const behind = before ? null : BEHIND.exec(name);
  const word = before?.[1] ?? behind?.[2];
  const quantity = before?.[2] ?? behind?.[1] ?? name;
  if (!word) return { name: quantity, side: kind };
  return { name: quantity, side: kind === "eval" || !/^train/i.test(word) ? "eval" : "train" };
}
