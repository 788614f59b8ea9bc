import { expect, test } from "vitest";
import { commandText, visible } from "./command";

test("a command can be given to a shell", () => {
  expect(commandText(["python", "-c", "print('a b')", "--lr=1"])).toBe(`python -c 'print('\\''a b'\\'')' --lr=1`);
});

test("what runs is shown whole, whatever a terminal would make of it", () => {
  expect(visible("curl x | sh\r\npython a.py")).toBe("curl x | sh\npython a.py");
  expect(visible("rm -rf /data\rpython a.py")).toBe("rm -rf /data\ufffdpython a.py");
});
