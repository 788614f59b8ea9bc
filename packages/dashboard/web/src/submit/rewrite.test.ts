import { expect, test } from "vitest";
import { parse } from "yaml";
import { type Json, type JsonObject, rewrite } from "./rewrite";

const TEXT = `# Tuned for the small cluster.
apiVersion: trainer.kubeflow.org/v2alpha1
kind: TrainJob
metadata:
  name: resnet   # the one that works
  namespace: 'vision'
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    args:
    - --lr # of Adam
    - "0.1"
    # as long as it takes
    - --epochs
    - "10"
    command: [python, train.py]
    env:
    - name: SEED
      value: "1" # as in the paper
    - name: TOKEN
      valueFrom: {secretKeyRef: {name: hub, key: token}}

    image: registry/torch:2   # pinned
    numNodes: 2
    x-unknown: &anchor kept
`;

/** The text with a value at a path; undefined removes it. */
function changed(text: string, path: (string | number)[], value: Json | undefined): string {
  const content = parse(text) as JsonObject;
  let place: any = content;
  for (const key of path.slice(0, -1)) place = place[key] ??= {};
  if (value === undefined) delete place[path.at(-1)!];
  else place[path.at(-1)!] = value;
  const result = rewrite(text, content);
  expect(parse(result)).toEqual(content);
  return result;
}

/** Lines that are only in one of two texts, as a diff has them. */
function difference(before: string, after: string): string[] {
  const [old, next] = [before.split("\n"), after.split("\n")];
  let first = 0;
  while (first < Math.min(old.length, next.length) && old[first] === next[first]) first++;
  let last = 0;
  while (last < Math.min(old.length, next.length) - first && old.at(-1 - last) === next.at(-1 - last)) last++;
  return [...old.slice(first, old.length - last).map((line) => `-${line}`), ...next.slice(first, next.length - last).map((line) => `+${line}`)];
}

test.each<[string, (string | number)[], Json | undefined, string[]]>([
  ["a number", ["spec", "trainer", "numNodes"], 4, ["-    numNodes: 2", "+    numNodes: 4"]],
  ["before a comment", ["metadata", "name"], "resnet-2", ["-  name: resnet   # the one that works", "+  name: resnet-2   # the one that works"]],
  ["a quoted text", ["metadata", "namespace"], "text", ["-  namespace: 'vision'", "+  namespace: text"]],
  ["a text that YAML takes for something else", ["metadata", "name"], "on", ["-  name: resnet   # the one that works", '+  name: "on"   # the one that works']],
  ["a text that is a sign of YAML 1.1", ["metadata", "name"], "<<", ["-  name: resnet   # the one that works", '+  name: "<<"   # the one that works']],
  ["a removed field", ["spec", "trainer", "image"], undefined, ["-    image: registry/torch:2   # pinned"]],
  ["a new field", ["spec", "trainer", "numProcPerNode"], "auto", ["+    numProcPerNode: auto"]],
  ["a new map", ["metadata", "labels"], { team: "a" }, ["+  labels:", "+    team: a"]],
  [
    "a map inside of a new map",
    ["spec", "trainer", "resourcesPerNode"],
    { limits: { "nvidia.com/gpu": 2 } },
    ["+    resourcesPerNode:", "+      limits:", "+        nvidia.com/gpu: 2"],
  ],
  ["in braces", ["spec", "runtimeRef", "kind"], "TrainingRuntime", ["-  runtimeRef: {name: torch-distributed}", "+  runtimeRef: {name: torch-distributed, kind: TrainingRuntime}"]],
  ["in brackets", ["spec", "trainer", "command"], ["torchrun", "train.py"], ["-    command: [python, train.py]", "+    command: [torchrun, train.py]"]],
  ["an item", ["spec", "trainer", "args", 1], "0.2", ['-    - "0.1"', '+    - "0.2"']],
  ["a further item", ["spec", "trainer", "args"], ["--lr", "0.1", "--epochs", "10", "--amp"], ["+    - --amp"]],
  ["an item in front", ["spec", "trainer", "args"], ["-v", "--lr", "0.1", "--epochs", "10"], ["+    - -v"]],
  ["fewer items", ["spec", "trainer", "args"], ["--lr", "0.1"], ["-    - --epochs", '-    - "10"']],
  ["a text of several lines", ["spec", "trainer", "args", 3], "a\n  b", ['-    - "10"', "+    - |-", "+      a", "+        b"]],
  ["a field of an item", ["spec", "trainer", "env", 0, "value"], "2", ['-      value: "1" # as in the paper', '+      value: "2" # as in the paper']],
  ["a further map in a list", ["spec", "trainer", "env", 2], { name: "A", value: "" }, ["+    - name: A", '+      value: ""']],
  ["all of a list", ["spec", "trainer", "args"], undefined, ['-    args:', "-    - --lr # of Adam", '-    - "0.1"', "-    # as long as it takes", "-    - --epochs", '-    - "10"']],
])("%s changes only its own lines", (_, path, value, lines) => {
  expect(difference(TEXT, changed(TEXT, path, value))).toEqual(lines);
});

test.each<[string, string, (string | number)[], Json | undefined, string]>([
  ["a field without a value", "a:\n  b: # why\nc: 1\n", ["a", "b"], { d: 1 }, "a:\n  b: # why\n    d: 1\nc: 1\n"],
  ["a field without a value, a text", "a:\n  b:\nc: 1\n", ["a", "b"], "d", "a:\n  b: d\nc: 1\n"],
  ["empty braces", "a: {}\nb: 1\n", ["a", "c"], 1, "a:\n  c: 1\nb: 1\n"],
  ["lists that stand further in", "a:\n  - 1\nb: 2\n", ["c"], [3], "a:\n  - 1\nb: 2\nc:\n  - 3\n"],
  ["another name", "a:\n  b: 1 # one\n  c: 2\nd: 3\n", ["a"], { e: 1, c: 2 }, "a:\n  e: 1 # one\n  c: 2\nd: 3\n"],
  ["another name of the last one", "a:\n  b: 1\n  c: 2\nd: 3\n", ["a"], { b: 1, e: 2 }, "a:\n  b: 1\n  e: 2\nd: 3\n"],
  ["one more and one less", "a:\n  b: 1\n  c: 2\n", ["a"], { b: 1, d: 2, e: 3 }, "a:\n  b: 1\n  d: 2\n  e: 3\n"],
  ["single quotes where the others have them", "a: 'on'\nb: '1'\n", ["b"], "2", "a: 'on'\nb: '2'\n"],
  ["no end of the last line", "a: 1", ["b"], "x", "a: 1\nb: x"],
  ["the first field of an item", "a:\n- b: 1\n  c: 2\n", ["a", 0, "b"], undefined, "a:\n- c: 2\n"],
  ["a text in several lines", "a: |\n  one\n  two\nb: 1\n", ["a"], "three", "a: three\nb: 1\n"],
  ["braces in several lines", "a: {\n  b: 1, # one\n  c: 2\n}\n", ["a", "b"], 3, "a: {\n  b: 3, # one\n  c: 2\n}\n"],
  ["all in braces", "{a: 1, b: 2} # why\n", ["a"], 3, "{a: 3, b: 2} # why\n"],
])("%s", (_, text, path, value, expected) => {
  expect(changed(text, path, value)).toBe(expected);
});

test("what says the same is not touched", () => {
  expect(rewrite(TEXT, parse(TEXT) as JsonObject)).toBe(TEXT);
});
