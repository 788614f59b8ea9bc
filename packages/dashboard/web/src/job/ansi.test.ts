import { expect, test } from "vitest";
import { levelOf, marked, pieces } from "./ansi";

const E = "\u001b";
const brief = (line: string) => pieces(line).map(({ text, color, isBold, isFaint }) => [text, color, isBold ? "bold" : isFaint ? "faint" : ""]);

test.each([
  ["plain", [["plain", null, ""]]],
  ["", []],
  [`${E}[31mred${E}[0m rest`, [["red", 1, ""], [" rest", null, ""]]],
  [`${E}[1;32mgreen${E}[22m thin${E}[39m no`, [["green", 2, "bold"], [" thin", 2, ""], [" no", null, ""]]],
  [`${E}[2mfaint${E}[m`, [["faint", null, "faint"]]],
  [`${E}[38;5;9mbright${E}[38;2;1;2;3mtrue`, [["bright", 1, ""], ["true", null, ""]]],
  [`${E}[91mbright`, [["bright", 1, ""]]],
  [`${E}]0;title\u0007text${E}[2Ktext${E}[10A`, [["texttext", null, ""]]],
  [`10 %\r20 %`, [["20 %", null, ""]]],
  ["20 %\r", [["20 %", null, ""]]],
  ["bell\u0007right\u202eleft", [["bell\ufffdright\ufffdleft", null, ""]]],
  ["<img src=x>", [["<img src=x>", null, ""]]],
  [`${E}[`, [["\ufffd[", null, ""]]],
])("%j", (line, expected) => {
  expect(brief(line)).toEqual(expected);
});

test("a line of colours alone costs a bounded number of pieces", () => {
  const line = Array.from({ length: 2000 }, (_, index) => `${E}[3${index % 8}mx`).join("");
  expect(pieces(line).length).toBeLessThanOrEqual(200);
  expect(pieces(line).map(({ text }) => text).join("")).toBe("x".repeat(2000));
});

test.each([
  ["ERROR no space", "error"],
  ["2026-01-01 [WARNING] slow", "warning"],
  ["RuntimeError: shapes differ", "error"],
  ["a.py:1: UserWarning: old", "warning"],
  ["Traceback (most recent call last):", "error"],
  ["error rate 0.1", ""],
  ["0 errors, val_error 0.2", ""],
])("%s: %s", (text, level) => {
  expect(levelOf(text)).toBe(level);
});

test("matches are found across colours", () => {
  const line = pieces(`a ${E}[31mLo${E}[0mss loss`);
  expect(marked(line, "loss").map(({ text, isMatch }) => (isMatch ? `[${text}]` : text)).join("")).toBe("a [Lo][ss] [loss]");
  expect(marked(line, "").map(({ text }) => text).join("")).toBe("a Loss loss");
});
