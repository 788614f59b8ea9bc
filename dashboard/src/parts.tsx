// Small pieces that several views show.

import type { ComponentChildren } from "preact";
import type { Row } from "./model";
import { duration } from "./format";

const TONES: Record<string, string> = {
  Running: "going",
  Complete: "good",
  Failed: "bad",
  Blocked: "warn",
  Stalled: "warn",
  Pending: "warn",
  Restarting: "warn",
  Suspended: "rest",
};

/** The state in a word; colour only underlines it. */
export function State({ of }: { of: Row }) {
  const word = of.isDeleted ? "Deleting" : of.state;
  return <span class={`state ${TONES[word] ?? "rest"}`}>{word}</span>;
}

export function Progress({ of }: { of: Row }) {
  if (of.progress === null) return null;
  return (
    <span class="progress">
      <progress value={of.progress} max={100} aria-label={`Progress of ${of.name}`} />
      <span>{of.progress} %</span>
    </span>
  );
}

export function Remaining({ of }: { of: Row }) {
  if (of.remaining === null || of.isSuspended) return null;
  return <span title={of.remainingText}>{duration(of.remaining)}</span>;
}

export function Problem({ children }: { children: ComponentChildren }) {
  return (
    <p class="problem" role="alert">
      {children}
    </p>
  );
}
