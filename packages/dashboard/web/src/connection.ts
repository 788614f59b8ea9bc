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
  /** When something of the cluster was heard last, or the line has broken; 0 before it opened first. */
  since: number;
  /** When the server of the page lost the cluster; 0 while it has it. */
  lostSince: number;
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

/** A stream is open. What was heard of the cluster before it broke stays, until the server says more. */
export function opened(key: object, now: number = Date.now()): void {
  const line = lines.get(key);
  if (line?.isOpen) return;
  lines.set(key, { isOpen: true, since: now, lostSince: line?.lostSince ?? 0 });
  changed();
}

/** Something was heard of the cluster. */
export function heard(key: object, when: number = Date.now()): void {
  lines.set(key, { isOpen: true, since: when, lostSince: 0 });
  changed();
}

/** The stream has sent what is new, which is of the cluster unless the server has lost that. */
export function news(key: object, now: number = Date.now()): void {
  if (lines.get(key)?.lostSince === 0) heard(key, now);
}

/** The stream is open, and its server has lost the cluster: that it goes on sending says nothing about what it shows. */
export function lostCluster(key: object, when: number): void {
  const line = lines.get(key);
  lines.set(key, { isOpen: true, since: line?.since ?? when, lostSince: line?.lostSince || when });
  changed();
}

/** A stream is not open: it was not yet, or, when this is said once more, it is tried again. */
export function lost(key: object, now: number = Date.now()): void {
  const line = lines.get(key);
  if (line && !line.isOpen && line.since > 0) return;
  lines.set(key, { isOpen: false, since: line ? now : 0, lostSince: line?.lostSince ?? 0 });
  changed();
}

/** Nobody wants the stream any more. */
export function dropped(key: object): void {
  lines.delete(key);
  changed();
}

export function connection(): Connection {
  const all = [...lines.values()];
  const broken = all.flatMap(({ isOpen, since, lostSince }) => [lostSince, isOpen ? 0 : since]).filter(Boolean);
  if (broken.length > 0) return { state: "reconnecting", since: Math.min(...broken) };
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
