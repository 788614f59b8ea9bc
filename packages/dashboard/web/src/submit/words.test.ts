import { expect, test } from "vitest";
import { joined, split } from "./words";

test.each([
  ["--lr 0.1 --epochs=3", ["--lr", "0.1", "--epochs=3"]],
  ["  a\n\tb  ", ["a", "b"]],
  ["", []],
  ["''", [""]],
  [`--name 'a b' "c d"e`, ["--name", "a b", "c de"]],
  [`'it'\\''s'`, ["it's"]],
  [`"say \\"hi\\" for \\$5 and \\n"`, [`say "hi" for $5 and \\n`]],
  ["train.py \\\n  --lr 1", ["train.py", "--lr", "1"]],
  ["a\\ b \\", ["a b", "\\"]],
  ["'print(1)\nprint(2)'", ["print(1)\nprint(2)"]],
  ["$HOME *.py ~", ["$HOME", "*.py", "~"]],
])("%j", (text, words) => {
  expect(split(text)).toEqual(words);
});

test.each([["'a", "'"], ['a "b', '"']])("%j is not complete", (text, quote) => {
  expect(() => split(text)).toThrow(`The quote ${quote} is not closed.`);
});

test.each([[["--lr", "0.1", "train it", "--amp"]], [["it's", "", "\\", "$x", "a\nb"]], [[]]])("%j comes back", (words) => {
  expect(split(joined(words))).toEqual(words);
});

test("each option has a line", () => {
  expect(joined(["train.py", "--lr", "0.1", "--amp"])).toBe("train.py\n--lr 0.1\n--amp");
});
