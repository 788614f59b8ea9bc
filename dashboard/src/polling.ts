// What is asked for again and again, while somebody sees the page.

import { useEffect, useState } from "preact/hooks";
import { request } from "./api";

export interface Polled<T> {
  /** The last answer; null before the first one. */
  value: T | null;
  /** Why there is no newer one. */
  problem: string;
}

/** The answer at a path. */
export function usePolled<T>(path: string, pause: number): Polled<T> {
  const [state, setState] = useState<Polled<T>>({ value: null, problem: "" });
  useEffect(() => {
    let isCurrent = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      clearTimeout(timer);
      try {
        const value = await request<T>("GET", path);
        if (isCurrent) setState({ value, problem: "" });
      } catch (error) {
        if (isCurrent) setState(({ value }) => ({ value, problem: (error as Error).message }));
      }
      if (isCurrent && !document.hidden) timer = setTimeout(() => void ask(), pause);
    };
    const onVisibility = () => {
      if (document.hidden) clearTimeout(timer);
      else void ask();
    };
    document.addEventListener("visibilitychange", onVisibility);
    void ask();
    return () => {
      isCurrent = false;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisibility);
    };
  }, [path, pause]);
  return state;
}
