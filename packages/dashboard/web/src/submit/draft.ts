// What is being written, kept by the tab until it is created or given up.

import { useEffect } from "preact/hooks";
import { guardLeaving } from "../route";

export interface Draft {
  /** What it began as. */
  original: string;
  text: string;
}

/** Where the tab keeps the draft of a copy of a TrainJob, or, with an empty place, of a new one. */
function keyOf(place: string): string {
  return `draft ${place}`;
}

export function storedDraft(place: string): Draft | null {
  try {
    const kept = JSON.parse(sessionStorage.getItem(keyOf(place)) ?? "null") as Partial<Draft> | null;
    return kept && typeof kept.original === "string" && typeof kept.text === "string" ? { original: kept.original, text: kept.text } : null;
  } catch {
    return null;
  }
}

/** Keep a draft; one that says nothing new, and null, need not be kept. */
export function storeDraft(place: string, draft: Draft | null): void {
  try {
    if (draft && draft.text !== draft.original) sessionStorage.setItem(keyOf(place), JSON.stringify(draft));
    else sessionStorage.removeItem(keyOf(place));
  } catch {
    // The browser keeps nothing: leaving asks all the same.
  }
}

/** Forget all drafts of the tab, which the next user of it should not see. */
export function forgetDrafts(): void {
  try {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(keyOf(""))) sessionStorage.removeItem(key);
  } catch {
    // There are none.
  }
}

const OWNER = "drafts of";

/** Forget the drafts of anybody else: who looks at a cluster may change without a log out, as when a token expires. */
export function keepDraftsOf(owner: string): void {
  try {
    if ((sessionStorage.getItem(OWNER) ?? owner) !== owner) forgetDrafts();
    sessionStorage.setItem(OWNER, owner);
  } catch {
    // There are none.
  }
}

/** Ask before the page is left, while there is something that would be missed; `ask` shows a question, and may proceed. */
export function useLeaving(isChanged: boolean, ask: (proceed: () => void) => void): void {
  useEffect(() => {
    if (!isChanged) return;
    const onUnload = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", onUnload);
    const release = guardLeaving(ask);
    return () => {
      window.removeEventListener("beforeunload", onUnload);
      release();
    };
  }, [isChanged, ask]);
}
