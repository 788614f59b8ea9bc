// Views of the list that were saved under a name, in this browser.

export interface View {
  name: string;
  /** The address of the list with its filters. */
  path: string;
}

const KEY = "views";
const MOST = 50;

function isView(value: unknown): value is View {
  const { name, path } = (value ?? {}) as Partial<View>;
  return typeof name === "string" && typeof path === "string" && /^\/(\?|$)/.test(path);
}

export function savedViews(): View[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter(isView) : [];
  } catch {
    return [];
  }
}

/** Save a view; one of the same name is replaced. Returns all of them. */
export function saveView(view: View): View[] {
  return keep([...savedViews().filter(({ name }) => name !== view.name), view].slice(-MOST));
}

export function removeView(name: string): View[] {
  return keep(savedViews().filter((each) => each.name !== name));
}

function keep(views: View[]): View[] {
  try {
    localStorage.setItem(KEY, JSON.stringify(views));
  } catch {
    // They last as long as the page.
  }
  return views;
}
