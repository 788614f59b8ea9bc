import { expect, test } from "vitest";
import { commandText, parametersOf, visible } from "./parameters";

test.each([
  ["python train.py --lr 0.1 --batch-size=32 --fp16", [["lr", "0.1"], ["batch-size", "32"], ["fp16", ""]]],
  ["torchrun --nnodes 2 train.py --lr 1e-4", [["lr", "1e-4"]]],
  ["python -m trl.sft --model gpt2", [["model", "gpt2"]]],
  ["python train.py model.lr=0.1 +trainer.devices=2", [["model.lr", "0.1"], ["+trainer.devices", "2"]]],
  ["python train.py --shift -0.5 --size 2 3", [["shift", "-0.5"], ["size", "2 3"]]],
  ["python -c print(1) --lr 0.1", [["lr", "0.1"]]],
  ["--lr 0.1", [["lr", "0.1"]]],
  ["python train.py data", []],
])("%s", (command, expected) => {
  expect(parametersOf(command.split(" "))).toEqual(expected);
});

test("a command can be given to a shell", () => {
  expect(commandText(["python", "-c", "print('a b')", "--lr=1"])).toBe(`python -c 'print('\\''a b'\\'')' --lr=1`);
});

test("what runs is shown whole, whatever a terminal would make of it", () => {
  expect(visible("curl x | sh\r\npython a.py")).toBe("curl x | sh\npython a.py");
  expect(visible("rm -rf /data\rpython a.py")).toBe("rm -rf /data\ufffdpython a.py");
});
