import { expect, test } from "vitest";
import { read } from "./manifest";

const TEXT = `apiVersion: trainer.kubeflow.org/v2alpha1
metadata:
  labels:
    kueue.x-k8s.io/queue-name: team
spec:
  runtimeRef: {name: torch}
  trainer:
    env:
    - name: A
      value: b
    - name: C
    resourcesPerNode:
      limits:
        nvidia.com/gpu: 1
        nvidia.com/gpu.shared: 1
`;

test.each([
  ["apiVersion", 1],
  ["spec.runtimeRef.name", 6],
  ["spec.runtimeRef.kind", 6],
  ["spec.trainer.env[1]", 11],
  ["spec.trainer.env[0].value", 10],
  ["spec.trainer.env[1].value", 11],
  ["spec.trainer.env[7].value", 8],
  ["spec.trainer.numNodes", 7],
  ["spec.trainer.resourcesPerNode.limits.nvidia.com/gpu", 14],
  ["spec.trainer.resourcesPerNode.limits[nvidia.com/gpu.shared]", 15],
  ["metadata.labels[kueue.x-k8s.io/queue-name]", 4],
  ["status", 1],
  ["", 1],
  ["line 3, column 7", 3],
])("%s stands in line %i", (field, line) => {
  expect(read(TEXT).lineOf(field)).toBe(line);
});

test.each([
  ["a: 'b\n", 2],
  ["a: 1\nb: [\nc: 2\n", 3],
  ["a: 1\n  b: 2\n", 1],
  ["a:\n  b: 1\n c: 2\n", 3],
  ["a:\n\tb: 1\n", 2],
  ["a: 1\na: 2\n", 2],
  ["a: *x\n", 1],
  ["a:\n- &x [*x]\n", 2],
  ["metadata: &m\n  name: *m\n", 2],
  ["a: &x {b: 1}\nc:\n  <<: *x\n", 3],
  ["", 1],
  ["- a\n", 1],
  ["a: 1\n---\nb: 2\n", 2],
])("%j cannot be read, and the line is named", (text, line) => {
  const { mistake, content } = read(text);
  expect(mistake?.line).toBe(line);
  expect(mistake?.message).toMatch(/^[A-Z].*\.$/);
  expect(content).toEqual({});
});
