// The order of nodes on the page of a training.

import type { Node } from "../model";

type Pod = Pick<Node, "phase" | "reason" | "restarts">;

/** Whether somebody should look at it. */
export function isTroubled({ phase, reason }: Pod): boolean {
  return phase === "Failed" || reason !== "";
}

/** Failed ones, then those with a reason for not running, then those that were restarted; else as they were. */
export function failedFirst<T extends Pod>(nodes: readonly T[]): T[] {
  const rank = ({ phase, reason, restarts }: T) => (phase === "Failed" ? 0 : reason ? 1 : restarts > 0 ? 2 : 3);
  return nodes.map((node) => node).sort((a, b) => rank(a) - rank(b));
}
