// Which of thousands of rows are in the document: those on the screen, and some around them.

import { useEffect, useState } from "preact/hooks";
import type { RefObject } from "preact";

const AROUND = 8;

interface Window {
  first: number;
  last: number;
}

/** The part of a list of equally high rows that a screen shows. */
export function part(top: number, screen: number, height: number, count: number): Window {
  const first = Math.max(Math.floor(-top / height) - AROUND, 0);
  const last = Math.min(Math.ceil((screen - top) / height) + AROUND, count);
  return { first: Math.min(first, count), last: Math.max(last, 0) };
}

export function useWindow(list: RefObject<HTMLElement | null>, height: number, count: number): Window {
  const [place, setPlace] = useState({ top: 0, screen: 800 });
  useEffect(() => {
    const measure = () =>
      setPlace((before) => {
        const now = { top: list.current?.getBoundingClientRect().top ?? 0, screen: window.innerHeight };
        return now.top === before.top && now.screen === before.screen ? before : now;
      });
    measure();
    window.addEventListener("scroll", measure, { passive: true });
    window.addEventListener("resize", measure);
    // What is above the list may come and go without either.
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => {
      observer.disconnect();
      window.removeEventListener("scroll", measure);
      window.removeEventListener("resize", measure);
    };
  }, [list]);
  return part(place.top, place.screen, height, count);
}

/** Whether the screen is as a media query says. */
export function useMedia(text: string): boolean {
  const [query] = useState(() => window.matchMedia(text));
  const [isSo, setSo] = useState(query.matches);
  useEffect(() => {
    const listen = () => setSo(query.matches);
    query.addEventListener("change", listen);
    return () => query.removeEventListener("change", listen);
  }, [query]);
  return isSo;
}
