import { expect, test } from "vitest";
import { stepped } from "./brush";

const press = (part: [number, number] | null, key: string, shiftKey = false) => stepped(part, 0.1, { key, shiftKey });

test.each([
  ["an arrow up takes away below", null, "ArrowUp", false, [0.1, 1]],
  ["an arrow down takes away above", null, "ArrowDown", false, [0, 0.9]],
  ["Shift gives back above", [0.2, 0.5], "ArrowUp", true, [0.2, 0.6]],
  ["Shift gives back below", [0.2, 0.5], "ArrowDown", true, [0.1, 0.5]],
  ["ends do not cross", [0.45, 0.5], "ArrowUp", false, [0.5, 0.5]],
  ["all is no part", [0.1, 1], "ArrowDown", true, null],
  ["Escape keeps all", [0.1, 0.4], "Escape", false, null],
  ["Escape without a part is for others", null, "Escape", false, undefined],
  ["other keys are for others", null, "a", false, undefined],
  ["what stands beyond the axis counts from its end", [-0.06, 0.5], "ArrowUp", false, [0.1, 0.5]],
] as const)("%s", (_, part, key, shiftKey, expected) => {
  const found = press(part as [number, number] | null, key, shiftKey);
  if (!expected) expect(found).toBe(expected);
  else expect(found).toEqual(expected.map((each) => expect.closeTo(each)));
});
