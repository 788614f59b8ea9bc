// The question before a page with a draft is left.

import { Dialog } from "../shell/dialog";

interface LeaveProperties {
  /** Goes on to the other page; null while nobody wants to. */
  proceed: (() => void) | null;
  onStay(): void;
  /** Gives up the draft. */
  onDiscard(): void;
}

export function Leave({ proceed, onStay, onDiscard }: LeaveProperties) {
  if (!proceed) return null;
  return (
    <Dialog labelledBy="leave-title" onClose={onStay}>
      <h2 id="leave-title">Leave without creating it?</h2>
      <p>What you have typed is there when you come back to this page, until you log out or close this tab.</p>
      <div class="actions">
        <button type="button" class="primary" onClick={onStay}>
          Stay
        </button>
        <button type="button" onClick={() => proceed()}>
          Leave
        </button>
        <button
          type="button"
          class="danger"
          onClick={() => {
            onDiscard();
            proceed();
          }}
        >
          Discard it
        </button>
      </div>
    </Dialog>
  );
}
