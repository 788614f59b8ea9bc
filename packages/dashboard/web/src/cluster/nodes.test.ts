import { expect, test } from "vitest";
import type { Member } from "../model";
import { type Show, beginClosed, counts, groups, items, product, select, summary } from "./nodes";

function node(name: string, gpus = 0, changes: Partial<Member> = {}): Member {
  const device = { resource: "nvidia.com/gpu", product: "NVIDIA-H100-80GB-HBM3", total: gpus, requested: 2, free: gpus - 2 };
  return {
    name, instanceType: "", troubles: [], why: "", since: null, devices: gpus ? [device] : [],
    cpu: { total: 96, requested: 1, used: null }, memory: { total: 1, requested: 1, used: null },
    trainings: [], moreTrainings: 0, otherPods: 0, ...changes,
  };
}

const MEMBERS = [
  node("cpu-0"),
  node("gpu-0", 8),
  node("gpu-1", 8, { troubles: ["Cordoned"], devices: [{ ...node("", 8).devices[0]!, requested: 8, free: 0 }] }),
  node("old-0", 4, { instanceType: "p3", trainings: [{ namespace: "vision", name: "resnet", pods: 1, devices: 2 }] }),
];

test("equal nodes are grouped, those with most GPUs first", () => {
  expect(groups(MEMBERS).map(({ title, instanceType, members }) => [title, instanceType, members.map(({ name }) => name)])).toEqual([
    ["8 × H100 80GB HBM3", "", ["gpu-0", "gpu-1"]],
    ["4 × H100 80GB HBM3", "p3", ["old-0"]],
    ["No GPUs", "", ["cpu-0"]],
  ]);
});

test.each([
  [MEMBERS.slice(1, 3), "10 of 16 GPUs requested, 6 free, 1 with problems"],
  [MEMBERS.slice(0, 1), ""],
  [[node("a", 8, { devices: [{ ...node("", 8).devices[0]!, requested: null, free: null }] })], "8 GPUs"],
])("a group says what is requested of it", (members, line) => {
  expect(summary({ key: "", title: "", instanceType: "", members })).toBe(line);
});

test.each<[string, Show, string[]]>([
  ["", "all", ["cpu-0", "gpu-0", "gpu-1", "old-0"]],
  ["", "free", ["gpu-0", "old-0"]],
  ["", "trouble", ["gpu-1"]],
  ["H100 cordoned", "all", ["gpu-1"]],
  ["vision/resnet", "all", ["old-0"]],
  ["p3", "trouble", []],
])("%j among %s finds %j", (text, show, names) => {
  expect(select(MEMBERS, text, show).map(({ name }) => name)).toEqual(names);
});

test("the choices are counted", () => {
  expect(counts(MEMBERS)).toEqual({ all: 4, free: 2, trouble: 1 });
});

test("groups of few nodes are open and those of many closed, until somebody asks for the other", () => {
  const shown = (isClosed: boolean, toggled: string[]) =>
    items(MEMBERS, isClosed, new Set(toggled)).map(({ group, member }) => group?.title ?? member?.name);
  const key = groups(MEMBERS)[0]!.key;
  expect(shown(false, [key])).toEqual(["8 × H100 80GB HBM3", "4 × H100 80GB HBM3", "old-0", "No GPUs", "cpu-0"]);
  expect(shown(true, [key])).toEqual(["8 × H100 80GB HBM3", "gpu-0", "gpu-1", "4 × H100 80GB HBM3", "No GPUs"]);
  expect(items(MEMBERS.slice(0, 1), false, new Set())).toEqual([{ member: MEMBERS[0] }]);
  const many = Array.from({ length: 500 }, (_, at) => node(`n-${at}`, 8));
  expect([beginClosed(many, "", "all"), beginClosed(many, "n-1", "all"), beginClosed(many, "", "free")]).toEqual([true, false, false]);
  expect(beginClosed(MEMBERS, "", "all")).toBe(false);
});

test.each([
  ["NVIDIA-A100-SXM4-80GB", "A100 SXM4 80GB"],
  ["nvidia-h100-80gb", "h100 80gb"],
  ["Tesla-T4", "Tesla T4"],
  ["", ""],
])("the product %j is shown as %j", (name, title) => {
  expect(product(name)).toBe(title);
});
