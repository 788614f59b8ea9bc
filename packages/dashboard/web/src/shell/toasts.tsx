// Toasts: what an action has done, said for a while at the edge of the page.

import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icons";

interface Toast {
  id: number;
  text: string;
  tone: "good" | "bad";
}

const SECONDS = { good: 5, bad: 12 };
const MOST = 5;

let toasts: readonly Toast[] = [];
let count = 0;
const listeners = new Set<() => void>();

function show(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

/** Say something for a while; what failed stays longer. */
export function toast(text: string, tone: Toast["tone"] = "good"): void {
  const id = ++count;
  show([...toasts, { id, text, tone }].slice(-MOST));
  setTimeout(() => dismiss(id), SECONDS[tone] * 1000);
}

function dismiss(id: number): void {
  show(toasts.filter((each) => each.id !== id));
}

export function Toasts() {
  const [, refresh] = useState(0);
  useEffect(() => {
    const listen = () => refresh((times) => times + 1);
    listeners.add(listen);
    return () => void listeners.delete(listen);
  }, []);
  return (
    <section class="toasts" aria-label="Notifications" aria-live="polite">
      {toasts.map(({ id, text, tone }) => (
        <p key={id} class={`toast ${tone}`}>
          <Icon of={tone === "good" ? "check" : "alert"} />
          <span>{text}</span>
          <button type="button" class="icon" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon of="close" />
          </button>
        </p>
      ))}
    </section>
  );
}
