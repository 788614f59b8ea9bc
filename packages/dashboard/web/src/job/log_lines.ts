// The last lines of the logs of some containers, in the order in which they were written.

import { type Level, type Piece, levelOf, pieces } from "./ansi";

export interface Line {
  /** Counts up from the first line, so that a line keeps its identity. */
  id: number;
  source: number;
  stamp: string;
  /** The stamp without its "Z", which sorts after digits: fractions of a second have as many of them as they need. */
  time: string;
  text: string;
  /** The same with its colours. */
  pieces: Piece[];
  level: Level;
}

export const KEPT = 5000;

/** Add lines of one source to all; older ones than the last `KEPT` are dropped. */
export function add(lines: readonly Line[], source: number, added: readonly [string, string][], firstId: number): Line[] {
  const fresh = added.map(([stamp, text], index) => ({ id: firstId + index, source, stamp, time: stamp.replace(/Z$/, ""), ...looked(text) }));
  const oldest = fresh[0]?.time ?? "";
  // Sources are read side by side: only what was written since the first of the new lines has to be put in order.
  let split = lines.length;
  while (split > 0 && oldest && lines[split - 1]!.time > oldest) split--;
  const tail = lines.slice(split).concat(fresh);
  if (split < lines.length) tail.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : a.id - b.id));
  return lines.slice(0, split).concat(tail).slice(-KEPT);
}

/** The line of a source that is written over and has not ended; its id stays, and is below those of all lines. */
export function unfinished(source: number, [stamp, text]: readonly [string, string]): Line {
  return { id: -1 - source, source, stamp, time: stamp.replace(/Z$/, ""), ...looked(text) };
}

/** Whether a line has a text, given in lower case; each line is looked at once. */
export function having(wanted: string): (line: Line) => boolean {
  const known = new WeakMap<Line, boolean>();
  return (line) => {
    let has = known.get(line);
    if (has === undefined) known.set(line, (has = line.text.toLowerCase().includes(wanted)));
    return has;
  };
}

/** The lines of each source. */
export function bySource(lines: readonly Line[], count: number): Line[][] {
  const found: Line[][] = Array.from({ length: count }, () => []);
  for (const line of lines) found[line.source]?.push(line);
  return found;
}

function looked(raw: string): Pick<Line, "text" | "pieces" | "level"> {
  const found = pieces(raw);
  const text = textOf(found);
  return { text, pieces: found, level: levelOf(text) };
}

function textOf(found: readonly Piece[]): string {
  return found.map(({ text }) => text).join("");
}

/** Lines as a terminal would leave them. */
export function shownLines(text: string): string {
  return text.split("\n").map(shown).join("\n");
}

/** A line as a terminal would leave it, without its colours. */
export function shown(text: string): string {
  return textOf(pieces(text));
}
