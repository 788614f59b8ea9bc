import { expect, test } from "vitest";
import { changeBetween } from "./editor";
import { assignments } from "./pairs";

test.each([
  ["A=1", [["A", "1"]]],
  ["# of the paper\nexport A=1\n\nB='x y'\r\nC=\"a=b\"\n", [["A", "1"], ["B", "x y"], ["C", "a=b"]]],
  ["A=", [["A", ""]]],
  ["A", []],
  ["A=1\nsomething else", []],
  ["", []],
])("%j is pasted as %j", (text, rows) => {
  expect(assignments(text).map(({ name, value }) => [name, value])).toEqual(rows);
});

test.each([
  ["abc", "abXc", { from: 2, to: 2, insert: "X" }],
  ["abc", "ac", { from: 1, to: 2, insert: "" }],
  ["aa", "aaa", { from: 2, to: 2, insert: "a" }],
  ["", "a", { from: 0, to: 0, insert: "a" }],
  ["abc", "xyz", { from: 0, to: 3, insert: "xyz" }],
])("%j becomes %j by one change", (before, after, change) => {
  expect(changeBetween(before, after)).toEqual(change);
});
