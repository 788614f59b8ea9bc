// What the page asks for: once for each version of an object, or again and again while somebody sees it.

import { useEffect, useState } from "preact/hooks";
import { request } from "./api";

export interface Answer<T> {
  /** The last answer; null before the first one. */
  value: T | null;
  /** Why there is no newer one. */
  problem: string;
}

const NONE = { value: null, problem: "" };

/** Ask at a path; returns what follows from the answer before, whose value stays if this fails. */
async function ask<T>(path: string): Promise<(before: Answer<T>) => Answer<T>> {
  try {
    const value = await request<T>("GET", path);
    return () => ({ value, problem: "" });
  } catch (error) {
    return ({ value }) => ({ value, problem: (error as Error).message });
  }
}

/** The answer at a path for a version of what it is about; null keeps the last one. */
export function useAnswer<T>(path: string, version: string | null): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>(NONE);
  useEffect(() => {
    if (version === null) return;
    let isCurrent = true;
    void ask<T>(path).then((next) => isCurrent && setAnswer(next));
    return () => {
      isCurrent = false;
    };
  }, [path, version]);
  return answer;
}

/** The answer at a path, asked for again after a pause. */
export function usePolled<T>(path: string, pause: number): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>(NONE);
  useEffect(() => {
    let isCurrent = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const poll = async () => {
      clearTimeout(timer);
      const next = await ask<T>(path);
      if (!isCurrent) return;
      setAnswer(next);
      if (!document.hidden) timer = setTimeout(() => void poll(), pause);
    };
    const onVisibility = () => {
      if (document.hidden) clearTimeout(timer);
      else void poll();
    };
    document.addEventListener("visibilitychange", onVisibility);
    void poll();
    return () => {
      isCurrent = false;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisibility);
    };
  }, [path, pause]);
  return answer;
}
