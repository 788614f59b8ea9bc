// The error that the last lines of a log end with.

const TRACEBACK = "Traceback (most recent call last):";
const ERROR = /^(?:\S{0,80}: )?((?:[A-Za-z_][\w.]*)(?:Error|Exception|Interrupt|Exit|Warning)\b.*)$/;

/** The last line of the last traceback, such as `RuntimeError: shapes differ`; "" where there is none. */
export function errorOf(lines: readonly string[]): string {
  const start = lines.findLastIndex((line) => line.includes(TRACEBACK));
  if (start < 0) return "";
  // The message may have several lines, of which the first one names the error.
  for (const line of lines.slice(start + 1)) {
    const text = line.trimEnd();
    if (ERROR.test(text)) return ERROR.exec(text)![1]!;
  }
  return "";
}
