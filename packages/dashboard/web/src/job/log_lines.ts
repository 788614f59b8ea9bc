// The last lines of the logs of some containers, in the order in which they were written.

export interface Line {
  /** Counts up from the first line, so that a line keeps its identity. */
  id: number;
  source: number;
  stamp: string;
  /** The stamp without its "Z", which sorts after digits: fractions of a second have as many of them as they need. */
  time: string;
  text: string;
}

export const KEPT = 5000;

/** Add lines of one source to all; older ones than the last `KEPT` are dropped. */
export function add(lines: readonly Line[], source: number, added: readonly [string, string][], firstId: number): Line[] {
  const fresh = added.map(([stamp, text], index) => ({ id: firstId + index, source, stamp, time: stamp.replace(/Z$/, ""), text: shown(text) }));
  const oldest = fresh[0]?.time ?? "";
  // Sources are read side by side: only what was written since the first of the new lines has to be put in order.
  let split = lines.length;
  while (split > 0 && oldest && lines[split - 1]!.time > oldest) split--;
  const tail = lines.slice(split).concat(fresh);
  if (split < lines.length) tail.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : a.id - b.id));
  return lines.slice(0, split).concat(tail).slice(-KEPT);
}

/** The lines of each source. */
export function bySource(lines: readonly Line[], count: number): Line[][] {
  const found: Line[][] = Array.from({ length: count }, () => []);
  for (const line of lines) found[line.source]?.push(line);
  return found;
}

const ESCAPES = /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b[@-Z\\-_]/g;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** A line as a terminal would leave it: the last state of a progress bar, no colours; other controls are visible. */
export function shown(text: string): string {
  const plain = text.replace(ESCAPES, "");
  return plain.slice(plain.lastIndexOf("\r") + 1).replace(CONTROLS, "\ufffd");
}
