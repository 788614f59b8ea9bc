import { expect, test, vi } from "vitest";

// uPlot asks for the density of the screen.
vi.stubGlobal("matchMedia", () => ({ addEventListener: () => undefined }));
const { isZoomed } = await import("./charts");

test.each([
  [{ min: 1, max: 9 }, [1, 5, 9], false],
  [{ min: 0.5, max: 1.5 }, [1], false],
  [{ min: 3, max: 9 }, [1, 5, 9], true],
  [{ min: 1, max: 4 }, [1, 5, 9], true],
  [{}, [], false],
  [{ min: 1, max: 2 }, [], false],
])("%j of %j is zoomed: %s", (scale, x, expected) => {
  expect(isZoomed(scale, x)).toBe(expected);
});
