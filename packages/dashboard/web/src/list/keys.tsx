// Filters and keys of long lists: a slash goes to the search, and arrows go from row to row.

import { useEffect, useRef } from "preact/hooks";

const HEADER = 130;

/** The search of a list; Escape empties it. */
export function SearchField({ text, onText }: { text: string; onText(text: string): void }) {
  const search = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) return;
      event.preventDefault();
      search.current?.focus();
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, []);
  return (
    <label>
      <span class="unseen">Search</span>
      <input
        ref={search}
        type="search"
        aria-keyshortcuts="/"
        placeholder={window.matchMedia("(pointer: coarse)").matches ? "Search" : "Search, or press /"}
        value={text}
        onInput={(event) => onText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Escape" && (onText(""), event.currentTarget.blur())}
      />
    </label>
  );
}

interface ChoiceProperties {
  title: string;
  values: readonly string[];
  chosen: string;
  /** The word for all of them. */
  all?: string;
  onChoice(value: string): void;
}

/** A choice of one value, or of all. */
export function Choice({ title, values, chosen, all = "all", onChoice }: ChoiceProperties) {
  return (
    <label>
      <span>{title}</span>
      <select value={chosen} onChange={(event) => onChoice(event.currentTarget.value)}>
        <option value="">{all}</option>
        {values.map((value) => (
          <option key={value} value={value}>
            {value}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Arrow keys go to the next row in which something can have the focus; it is in the document, unless many have nothing. */
export function move(event: KeyboardEvent, height: number): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  const row = (event.target as HTMLElement).closest<HTMLElement>("[data-index]");
  if (!step || !row) return;
  event.preventDefault();
  const rowAt = (index: number) => row.parentElement?.querySelector<HTMLElement>(`[data-index="${index}"]`);
  let index = Number(row.dataset.index) + step;
  while (rowAt(index)?.querySelector("a, button") === null) index += step;
  const next = rowAt(index);
  if (!next) return;
  next.querySelector<HTMLElement>("a, button")?.focus({ preventScroll: true });
  const { top, bottom } = next.getBoundingClientRect();
  if (top < HEADER) window.scrollBy(0, top - HEADER);
  if (bottom > window.innerHeight) window.scrollBy(0, bottom - window.innerHeight + height);
}
