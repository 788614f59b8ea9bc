import { expect, test } from "vitest";
import { failedFirst } from "./node_order";
import { errorOf } from "./traceback";

const START = "Traceback (most recent call last):";

test.each([
  [[], ""],
  [["step 1", "killed"], ""],
  [["step 1", START, '  File "a.py", line 1, in <module>', "    f()", "RuntimeError: shapes differ"], "RuntimeError: shapes differ"],
  [["a", START, "KeyError: 'a'", "During handling", START, "  f()", "torch.cuda.OutOfMemoryError: 2 GiB", "more"], "torch.cuda.OutOfMemoryError: 2 GiB"],
  [[START, "KeyboardInterrupt"], "KeyboardInterrupt"],
])("%j ends with %j", (lines, expected) => {
  expect(errorOf(lines)).toBe(expected);
});

test("failed nodes are first, and others keep their order", () => {
  const node = (name: string, phase: string, reason = "", restarts = 0) => ({ name, phase, reason, restarts });
  const nodes = [node("a", "Running"), node("b", "Running", "", 2), node("c", "Failed", "Error"), node("d", "Pending", "Unschedulable"), node("e", "Running")];
  expect(failedFirst(nodes).map(({ name }) => name).join("")).toBe("cdbae");
});
