// Suspend, resume and delete a sweep: what the user has the rights to.

import { useEffect, useState } from "preact/hooks";
import { ApiError, request, sweepApiPath } from "../api";
import { ENDED, type Rights, type Sweep } from "../model";
import { Problem } from "../parts";
import { Dialog, useKeptFocus } from "../shell/dialog";

export function SweepActions({ sweep }: { sweep: Sweep }) {
  const [rights, setRights] = useState<Rights | null>(null);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [isAsked, setAsked] = useState(false);
  const root = useKeptFocus<HTMLDivElement>();
  const path = sweepApiPath(sweep);
  useEffect(() => {
    setRights(null);
    request<Rights>("GET", `${path}/rights`).then(setRights, (error: Error) => setProblem(error.message));
  }, [path]);
  async function change(method: string, at: string): Promise<void> {
    setBusy(true);
    setProblem("");
    try {
      await request(method, at, { uid: sweep.uid });
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
    }
    setBusy(false);
  }
  const verb = sweep.isSuspended ? "resume" : "suspend";
  return (
    <div class="actions" ref={root}>
      {rights?.suspend && !ENDED.has(sweep.state) && !sweep.isDeleted && (
        <button type="button" disabled={isBusy} onClick={() => void change("POST", `${path}/${verb}`)}>
          {sweep.isSuspended ? "Resume" : "Suspend"}
        </button>
      )}
      {rights?.delete && !sweep.isDeleted && (
        <button type="button" class="danger" aria-disabled={isBusy} onClick={() => !isBusy && setAsked(true)}>
          Delete ...
        </button>
      )}
      {problem && <Problem>{problem}</Problem>}
      {isAsked && (
        <Dialog labelledBy="delete-title" onClose={() => setAsked(false)}>
          <h2 id="delete-title">Delete {sweep.name}?</h2>
          <p>Its trials are deleted with it, and with them their pods, logs and curves.</p>
          <div class="actions">
            <button type="button" onClick={() => setAsked(false)}>
              Keep it
            </button>
            <button
              type="button"
              class="danger"
              onClick={() => {
                setAsked(false);
                void change("DELETE", path);
              }}
            >
              Delete
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}
