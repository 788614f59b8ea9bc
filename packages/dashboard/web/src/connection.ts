// Whether the streams of the page are open: what it shows is that of now.

import { useEffect, useState } from "preact/hooks";

export interface Connection {
  /** Without a stream the page follows nothing. */
  state: "none" | "connecting" | "live" | "reconnecting";
  /** When the oldest trouble began, or something was heard last; in milliseconds. */
  since: number;
}

interface Line {
  isOpen: boolean;
  /** When it was heard last, or has broken; 0 before it opened first. */
  since: number;
}

const lines = new Map<object, Line>();
const listeners = new Set<() => void>();
let before = "";

function changed(): void {
  const state = connection().state;
  if (state === before) return;
  before = state;
  for (const listener of listeners) listener();
}

/** A stream is open, and something was heard of it. */
export function heard(key: object, now: number = Date.now()): void {
  lines.set(key, { isOpen: true, since: now });
  changed();
}

/** A stream is not open: it was not yet, or it is tried again. */
export function lost(key: object, now: number = Date.now()): void {
  const line = lines.get(key);
  if (line && !line.isOpen) return;
  lines.set(key, { isOpen: false, since: line ? now : 0 });
  changed();
}

/** Nobody wants the stream any more. */
export function dropped(key: object): void {
  lines.delete(key);
  changed();
}

export function connection(): Connection {
  const all = [...lines.values()];
  const broken = all.filter(({ isOpen, since }) => !isOpen && since > 0);
  if (broken.length > 0) return { state: "reconnecting", since: Math.min(...broken.map(({ since }) => since)) };
  const open = all.filter(({ isOpen }) => isOpen);
  if (open.length < all.length) return { state: "connecting", since: 0 };
  return open.length > 0 ? { state: "live", since: Math.max(...open.map(({ since }) => since)) } : { state: "none", since: 0 };
}

export function useConnection(): Connection {
  const [, refresh] = useState(0);
  useEffect(() => {
    const listen = () => refresh((count) => count + 1);
    listeners.add(listen);
    listen();
    return () => void listeners.delete(listen);
  }, []);
  return connection();
}
