import { expect, test } from "vitest";
import type { Listed } from "../model";
import { type Room, columns, reasonOf } from "./columns";

const EMPTY = { name: "a", state: "Pending", progress: null, remaining: null, metric: null, runtime: "torch", nodes: 1, gpus: null, owner: "", created: null } as unknown as Listed;

test.each([
  ["what nobody has", [EMPTY], ["name", "state", "runtime", "nodes", "created"]],
  ["what one has", [EMPTY, { ...EMPTY, progress: 0, owner: "me" }], ["name", "state", "progress", "runtime", "nodes", "owner", "created"]],
])("%s decides about a column", (_, rows, keys) => {
  expect(columns(rows, "created").map(({ key }) => key)).toEqual(keys);
});

test.each<[Room, string[]]>([
  ["medium", ["name", "state", "progress", "remaining", "owner", "created"]],
  ["small", ["name", "state", "progress", "owner", "created"]],
])("a %s screen has fewer columns", (room, keys) => {
  expect(columns([{ ...EMPTY, owner: "me", progress: 0, remaining: 1 }], "owner", room).map(({ key }) => key)).toEqual(keys);
});

test("the column that sorts stays", () => {
  expect(columns([EMPTY], "gpus").map(({ key }) => key)).toContain("gpus");
});

test.each([
  ["Pending", "no node has nvidia.com/gpu"],
  ["Failed", "no node has nvidia.com/gpu"],
  ["Running", ""],
])("%s is explained by %j", (state, reason) => {
  expect(reasonOf({ state, message: "no node has nvidia.com/gpu", isDeleted: false })).toBe(reason);
});
