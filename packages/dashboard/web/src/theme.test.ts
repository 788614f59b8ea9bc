import { expect, test, vi } from "vitest";

async function started(kept: string | null, isDark: boolean) {
  vi.resetModules();
  const items = new Map(kept === null ? [] : [["theme", kept]]);
  const system = { matches: isDark, addEventListener: (_: string, listener: () => void) => void (changed = listener) };
  let changed = () => {};
  const dataset: Record<string, string> = {};
  vi.stubGlobal("localStorage", { getItem: (key: string) => items.get(key) ?? null, setItem: (key: string, value: string) => void items.set(key, value) });
  vi.stubGlobal("document", { documentElement: { dataset } });
  vi.stubGlobal("window", { matchMedia: () => system, addEventListener: () => undefined });
  const theme = await import("./theme");
  theme.startTheme();
  return { theme, items, dataset, change: (dark: boolean) => ((system.matches = dark), changed()) };
}

test.each([
  ["the system", null, true, "dark"],
  ["what was chosen", "light", true, "light"],
  ["no other word", "sepia", false, "light"],
])("%s says which theme is shown", async (_, kept, isDark, shown) => {
  expect((await started(kept, isDark)).dataset.theme).toBe(shown);
});

test("a choice is kept, and the system does not change it", async () => {
  const { theme, items, dataset, change } = await started(null, false);
  theme.setTheme("dark");
  expect([dataset.theme, items.get("theme")]).toEqual(["dark", "dark"]);
  change(false);
  expect(dataset.theme).toBe("dark");
  theme.setTheme("system");
  change(true);
  expect(dataset.theme).toBe("dark");
});
