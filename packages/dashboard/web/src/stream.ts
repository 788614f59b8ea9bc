// What a stream keeps up to date.

import { useEffect, useRef, useState } from "preact/hooks";
import { follow } from "./api";
import type { ServerEvent } from "./sse";

interface Streamed {
  /** Why what is shown is not that of now: the stream is broken, or the server cannot follow the cluster. */
  problem: string;
}

/** What the events at a path make of what is shown at first; without a path there are none. */
export function useStream<T extends Streamed>(
  path: string | null,
  first: T,
  received: (before: T, event: ServerEvent) => T,
  isOver: (shown: T) => boolean = () => false,
): T {
  const [shown, setShown] = useState(first);
  const latest = useRef(first);
  useEffect(() => {
    const show = (next: T) => {
      latest.current = next;
      setShown(next);
    };
    show(first);
    if (path === null) return;
    return follow(path, {
      event: (event) => show(received(latest.current, event)),
      state: (problem) => show({ ...latest.current, problem }),
      isOver: () => isOver(latest.current),
    });
  }, [path]);
  return shown;
}
