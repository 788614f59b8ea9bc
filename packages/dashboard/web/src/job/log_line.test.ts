import { expect, test } from "vitest";
import { LogLine } from "./log_line";
import { add } from "./log_lines";

const [line, other] = add([], 0, [["2026-01-01T00:00:01Z", "\u001b[31mred\u001b[0m"], ["2026-01-01T00:00:02Z", "b"]], 0);
const shown = { line: line!, label: "node-0", hasTime: false, wanted: "", isCurrent: false };

test.each<[string, Partial<typeof shown>, boolean]>([
  ["nothing else changes", {}, false],
  ["it is another line", { line: other! }, true],
  ["times are wanted", { hasTime: true }, true],
  ["a text is looked for", { wanted: "b" }, true],
  ["it is walked to", { isCurrent: true }, true],
  ["its node is not said any more", { label: "" }, true],
])("a line is rendered anew when %s", (_, changes, isRendered) => {
  const rendered = new LogLine(shown);
  expect(rendered.shouldComponentUpdate({ ...shown, ...changes })).toBe(isRendered);
});
