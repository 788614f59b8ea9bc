import { expect, test } from "vitest";
import type { Recipe, Row } from "../model";
import { fieldsOf } from "./fields";
import { compareTexts, numberOf } from "./numbers";
import type { Training } from "./training";

const RECIPE: Recipe = {
  image: "a:1", command: [], args: [], parameters: [], repository: "", revision: "", isPacked: false, env: [], resources: {}, processes: "", data: [],
};

function training(id: string, recipe: Partial<Recipe> | null, row: Partial<Row> = {}): Training {
  return { id, recipe: recipe && { ...RECIPE, ...recipe }, row: { runtime: "torch", nodes: 2, ...row } as Row, past: null } as Training;
}

const shown = (trainings: Training[]) => {
  const { differing, same } = fieldsOf(trainings);
  const text = ({ title, values }: { title: string; values: readonly (string | null)[] }) => `${title}: ${values.join(" ")}`;
  return { differing: differing.map(text), same: same.map(text) };
};

test("what differs is told from what is the same: parameters, variables and settings", () => {
  const env = (value: string) => [{ name: "MODE", value, origin: "" }, { name: "KEY", value: "", origin: "secret hub" }];
  expect(
    shown([
      training("a", { parameters: [["lr", "1e-3"], ["fp16", ""], ["seed", "1"]], env: env("x") }),
      training("b", { parameters: [["lr", "0.001"], ["seed", "2"]], env: env("y") }, { nodes: 4 }),
    ]),
  ).toEqual({
    differing: ["fp16: on ", "seed: 1 2", "MODE: x y", "Nodes: 2 4"],
    same: ["lr: 1e-3 0.001", "KEY: from secret hub from secret hub", "Runtime: torch torch", "Image: a:1 a:1"],
  });
});

test("the variables of a sweep are parameters, as the reporter and options call them", () => {
  const env = (lr: string, seed: string) => [
    { name: "KUBEFLOW_TRAINER_OPT_LEARNING_RATE", value: lr, origin: "" },
    { name: "KUBEFLOW_TRAINER_OPT_BATCH", value: "32", origin: "" },
    { name: "KUBEFLOW_TRAINER_OPT_SEED", value: seed, origin: "" },
  ];
  const own: [string, string][] = [["learning-rate", "$(KUBEFLOW_TRAINER_OPT_LEARNING_RATE)"], ["seed", "7"]];
  expect(shown([training("a", { parameters: own, env: env("0.1", "1") }), training("b", { parameters: own, env: env("0.2", "2") })])).toEqual({
    differing: ["learning-rate: 0.1 0.2"],
    same: ["seed: 7 7", "batch: 32 32", "Runtime: torch torch", "Nodes: 2 2", "Image: a:1 a:1"],
  });
});

test("a training that is not known yet makes no difference, nor does one alone", () => {
  expect(shown([training("a", { parameters: [["lr", "1"]] }), training("b", null)]).differing).toEqual([]);
  expect(fieldsOf([training("a", { parameters: [["lr", "1"]] })]).same.map(({ key }) => key)).toContain("p:lr");
});

test.each([
  ["1e-3", 0.001],
  ["-.5", -0.5],
  ["1_000", 1000],
  ["1e999", null],
  ["0x10", null],
  ["", null],
  ["1 2", null],
])("%s says the number %s", (text, number) => {
  expect(numberOf(text)).toBe(number);
});

test("numbers are sorted by size before texts, and what is missing is last", () => {
  expect(["b", null, "10", "9", "1e-3", "a10", "a9"].sort(compareTexts)).toEqual(["1e-3", "9", "10", "a9", "a10", "b", null]);
});
