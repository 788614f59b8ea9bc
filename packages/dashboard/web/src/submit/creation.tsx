// What is around form and YAML: the verdict, the button that creates the TrainJob, and the question before it is left.

import type { ComponentChildren } from "preact";
import { useCallback, useRef, useState } from "preact/hooks";
import { request } from "../api";
import { Problem } from "../parts";
import { go, jobPath } from "../route";
import { toast } from "../shell/toasts";
import { type Draft, storeDraft, useLeaving } from "./draft";
import { Leave } from "./leave";
import type { Verdict } from "./trial";

interface CreationProperties {
  place: string;
  draft: Draft;
  verdict: Verdict;
  /** Called when a field of the form has what the TrainJob cannot have. */
  onIncomplete(): void;
  children: ComponentChildren;
}

export function Creation({ place, draft, verdict, onIncomplete, children }: CreationProperties) {
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [proceed, setProceed] = useState<{ run(): void } | null>(null);
  const isDone = useRef(false);
  const form = useRef<HTMLFormElement>(null);
  const ask = useCallback((run: () => void) => (isDone.current ? run() : setProceed({ run })), []);
  const canCreate = !isBusy && (verdict.tone === "good" || verdict.tone === "rest");
  useLeaving(draft.text !== draft.original, ask);
  const forget = () => {
    isDone.current = true;
    storeDraft(place, null);
  };
  async function create(): Promise<void> {
    if (!canCreate) return;
    if (!form.current!.checkValidity()) {
      onIncomplete();
      requestAnimationFrame(() => form.current?.reportValidity());
      return;
    }
    setBusy(true);
    setProblem("");
    try {
      const made = await request<{ namespace: string; name: string }>("POST", "/api/trainjobs", { yaml: draft.text });
      forget();
      toast(`Created ${made.name} in ${made.namespace}`);
      go(jobPath(made.namespace, made.name));
      window.scrollTo(0, 0);
    } catch (error) {
      setProblem((error as Error).message);
      setBusy(false);
    }
  }
  return (
    <form ref={form} class="composer" noValidate onSubmit={(event) => (event.preventDefault(), void create())} onKeyDown={(event) => onEnter(event, create)}>
      {children}
      <footer class="compose-bar">
        <p id="verdict" role="status" class={`verdict ${verdict.tone}`}>
          {verdict.text}
        </p>
        {problem && <Problem>{problem}</Problem>}
        <button type="submit" class="primary" disabled={!canCreate} title="Ctrl+Enter" aria-describedby="verdict">
          Create
        </button>
      </footer>
      <Leave proceed={proceed?.run ?? null} onStay={() => setProceed(null)} onDiscard={forget} />
    </form>
  );
}

/** Enter alone creates nothing, since it also ends what is typed into a field; with Ctrl or the command key it does. */
function onEnter(event: KeyboardEvent, create: () => Promise<void>): void {
  if (event.key !== "Enter") return;
  if (event.ctrlKey || event.metaKey) void create();
  else if (event.target instanceof HTMLInputElement) event.preventDefault();
}
