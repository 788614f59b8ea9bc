// Keys that keep a part of an axis, as a drag along it does.

type Part = readonly [from: number, to: number];

/**
 * What is kept after a key: an arrow takes a step away below or above, with Shift it gives one back, and Escape keeps
 * all of it (null). Undefined where the key is for something else.
 */
export function stepped(part: Part | null, step: number, { key, shiftKey }: Pick<KeyboardEvent, "key" | "shiftKey">): Part | null | undefined {
  if (key === "Escape") return part ? null : undefined;
  if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
  const [from, to] = [Math.max(part?.[0] ?? 0, 0), Math.min(part?.[1] ?? 1, 1)];
  const isUp = key === "ArrowUp";
  const next: Part = shiftKey ? (isUp ? [from, to + step] : [from - step, to]) : isUp ? [Math.min(from + step, to), to] : [from, Math.max(to - step, from)];
  return next[0] <= 0 && next[1] >= 1 ? null : next;
}
