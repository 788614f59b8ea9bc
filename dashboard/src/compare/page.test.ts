import { expect, test, vi } from "vitest";
import type { Row } from "../model";

// uPlot asks for the density of the screen.
vi.stubGlobal("matchMedia", () => ({ addEventListener: () => undefined }));
const { candidates } = await import("./page");

test("those with metrics are offered first, and none that is compared already", () => {
  const row = (name: string, metric: object | null) => ({ namespace: "a", name, metric }) as Row;
  const rows = [row("d", null), row("c", {}), row("b", {}), row("a", {})];
  expect(candidates(rows, ["a/a"])).toEqual(["a/b", "a/c", "a/d"]);
});
