import { expect, test, vi } from "vitest";
import type { Past, Row } from "../model";

// uPlot asks for the density of the screen.
vi.stubGlobal("matchMedia", () => ({ addEventListener: () => undefined }));
const { candidates, pastCandidates } = await import("./page");

test("those with metrics are offered first, and none that is compared already", () => {
  const row = (name: string, metric: object | null) => ({ namespace: "a", name, metric }) as Row;
  const rows = [row("d", null), row("c", {}), row("b", {}), row("a", {})];
  expect(candidates(rows, ["a/a"])).toEqual(["a/b", "a/c", "a/d"]);
});

test("trainings of the history are offered with what tells them apart", () => {
  const past = (uid: string) => ({ namespace: "a", name: "b", uid, ended: "2026-01-01T00:00:00Z", deleted: null }) as Past;
  const offered = pastCandidates([past("0123456789"), past("compared"), past("u")], ["a/b/compared"]);
  expect([...offered.values()]).toEqual(["a/b/0123456789", "a/b/u"]);
  expect([...offered.keys()][0]).toMatch(/^a\/b, ended .*, 01234567$/);
});
