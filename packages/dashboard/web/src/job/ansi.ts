// Colours of a terminal in lines of logs, as pieces of text with a style.

export interface Piece {
  text: string;
  /** The number of a colour from 0 to 7; null for that of the page. */
  color: number | null;
  isBold: boolean;
  isFaint: boolean;
}

type Style = Omit<Piece, "text">;

const PLAIN: Style = { color: null, isBold: false, isFaint: false };
const MOST_PIECES = 200;
const ESCAPE = /\u001b(?:\[([0-9;?:]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** The last state of a line that was written over, and only colours of its escapes; other controls are visible. */
export function pieces(line: string): Piece[] {
  const text = line.slice(line.trimEnd().lastIndexOf("\r") + 1);
  const found: Piece[] = [];
  let style = PLAIN;
  let from = 0;
  const add = (part: string) => {
    const clean = part.replace(CONTROLS, "\ufffd");
    if (!clean) return;
    const last = found.at(-1);
    if (last && (isSame(last, style) || found.length >= MOST_PIECES)) last.text += clean;
    else found.push({ ...style, text: clean });
  };
  for (const match of text.matchAll(ESCAPE)) {
    add(text.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] === "m") style = styled(style, match[1] ?? "");
  }
  add(text.slice(from).replace(/\r$/, ""));
  return found;
}

function isSame(a: Style, b: Style): boolean {
  return a.color === b.color && a.isBold === b.isBold && a.isFaint === b.isFaint;
}

/** What Select Graphic Rendition makes of a style; colours of 256 and more are those of the page. */
function styled(before: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/, 32).map(Number);
  let style = before;
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index]!;
    if (code === 0) style = PLAIN;
    else if (code === 1) style = { ...style, isBold: true };
    else if (code === 2) style = { ...style, isFaint: true };
    else if (code === 22) style = { ...style, isBold: false, isFaint: false };
    else if (code >= 30 && code <= 37) style = { ...style, color: code - 30 };
    else if (code >= 90 && code <= 97) style = { ...style, color: code - 90 };
    else if (code === 39) style = { ...style, color: null };
    else if (code === 38 || code === 48) {
      const number = codes[index + 2];
      if (code === 38) style = { ...style, color: codes[index + 1] === 5 && number !== undefined && number < 16 ? number % 8 : null };
      index += codes[index + 1] === 5 ? 2 : 4;
    }
  }
  return style;
}

export type Level = "error" | "warning" | "";

const LEVEL = /\b(?:(ERROR|CRITICAL|FATAL|Traceback|[A-Z]\w*(?:Error|Exception):)|(WARN(?:ING)?|\w*Warning:))/;
/** Of a line; a level stands at its beginning. */
const HEAD = 160;

export function levelOf(text: string): Level {
  const match = LEVEL.exec(text.slice(0, HEAD));
  if (!match) return "";
  return match[1] ? "error" : "warning";
}

/** Pieces cut at the places of a text that is looked for, case aside; `isMatch` says which they are. */
export function marked(line: readonly Piece[], wanted: string): (Piece & { isMatch: boolean })[] {
  const whole = line.map(({ text }) => text).join("");
  const lower = whole.toLowerCase();
  const looked = wanted.toLowerCase();
  // Of a few letters the lower case is longer: then no place in it is one of the text.
  const cuts: number[] = [];
  if (looked && lower.length === whole.length)
    for (let at = lower.indexOf(looked); at >= 0 && cuts.length < 2 * MOST_PIECES; at = lower.indexOf(looked, at + looked.length)) cuts.push(at, at + looked.length);
  const found: (Piece & { isMatch: boolean })[] = [];
  let start = 0;
  let cut = 0;
  for (const piece of line) {
    const end = start + piece.text.length;
    let from = start;
    while (from < end) {
      while (cut < cuts.length && cuts[cut]! <= from) cut++;
      const to = Math.min(cuts[cut] ?? end, end);
      found.push({ ...piece, text: whole.slice(from, to), isMatch: cut % 2 === 1 });
      from = to;
    }
    start = end;
  }
  return found;
}
