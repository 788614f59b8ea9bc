// The theme: that of the system, or the one that was chosen, which the browser keeps.

import { useEffect, useState } from "preact/hooks";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "theme";
const listeners = new Set<() => void>();
let chosen: Theme = "system";
let system: MediaQueryList | undefined;

function stored(): Theme {
  try {
    const kept = localStorage.getItem(KEY) as Theme;
    return THEMES.includes(kept) ? kept : "system";
  } catch {
    return "system";
  }
}

function isDark(): boolean {
  return chosen === "system" ? Boolean(system?.matches) : chosen === "dark";
}

function show(): void {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  for (const listener of listeners) listener();
}

/** Show the theme that was chosen, also when the system, or another tab, changes it. */
export function startTheme(): void {
  system = window.matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", show);
  window.addEventListener("storage", ({ key }) => key === KEY && ((chosen = stored()), show()));
  chosen = stored();
  show();
}

export function setTheme(theme: Theme): void {
  chosen = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It lasts until the page is loaded again.
  }
  show();
}

function useShown<T>(read: () => T): T {
  const [, refresh] = useState(0);
  useEffect(() => {
    const listen = () => refresh((count) => count + 1);
    listeners.add(listen);
    return () => void listeners.delete(listen);
  }, []);
  return read();
}

export function useTheme(): Theme {
  return useShown(() => chosen);
}

/** Whether the page is dark now; what draws with colours of the theme draws again when this changes. */
export function useDark(): boolean {
  return useShown(isDark);
}
