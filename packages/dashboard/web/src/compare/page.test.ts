import { expect, test, vi } from "vitest";

// uPlot asks for the density of the screen.
vi.stubGlobal("matchMedia", () => ({ addEventListener: () => undefined }));
const { sorted, withChosen } = await import("./page");

test.each([false, true])("a title sorts the best first, then the other way, then not at all; more is better: %s", (isMoreBetter) => {
  const first = sorted({ sort: "x", isReversed: true }, "a", isMoreBetter);
  const second = sorted(first, "a", isMoreBetter);
  expect([first, second, sorted(second, "a", isMoreBetter)]).toEqual([
    { sort: "a", isReversed: isMoreBetter },
    { sort: "a", isReversed: !isMoreBetter },
    { sort: "", isReversed: false },
  ]);
});

test("what is chosen takes the place of what was, and all else stays", () => {
  expect(withChosen(new URLSearchParams("job=x%2Fy&past=a%2Fb%2Fu&sort=name"), ["a/b", "a/c/v"]).toString()).toBe("sort=name&job=a%2Fb&past=a%2Fc%2Fv");
});
