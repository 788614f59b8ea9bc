// Suspend, resume and delete, as far as the user's rights go.

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, request, trainJobPath } from "../api";
import { ENDED, type Job, type Rights } from "../model";
import { Problem } from "../parts";

export function Actions({ job }: { job: Job }) {
  const [rights, setRights] = useState<Rights | null>(null);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const dialog = useRef<HTMLDialogElement>(null);
  const path = trainJobPath(job);
  useEffect(() => {
    setRights(null);
    request<Rights>("GET", `${path}/rights`).then(setRights, (error: Error) => setProblem(error.message));
  }, [path]);
  async function change(method: string, at: string): Promise<void> {
    setBusy(true);
    setProblem("");
    try {
      await request(method, at, { uid: job.uid });
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
    }
    setBusy(false);
  }
  const suspends = job.isSuspended ? "resume" : "suspend";
  return (
    <div class="actions">
      {rights?.suspend && !ENDED.has(job.state) && !job.isDeleted && (
        <button type="button" disabled={isBusy} onClick={() => void change("POST", `${path}/${suspends}`)}>
          {job.isSuspended ? "Resume" : "Suspend"}
        </button>
      )}
      {rights?.delete && !job.isDeleted && (
        <button type="button" class="danger" disabled={isBusy} onClick={() => dialog.current?.showModal()}>
          Delete ...
        </button>
      )}
      {problem && <Problem>{problem}</Problem>}
      <dialog ref={dialog} aria-labelledby="delete-title">
        <h2 id="delete-title">Delete {job.name}?</h2>
        <p>Its pods are deleted with it, and with them their logs and metrics.</p>
        <div class="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Keep it
          </button>
          <button
            type="button"
            class="danger"
            onClick={() => {
              dialog.current?.close();
              void change("DELETE", path);
            }}
          >
            Delete
          </button>
        </div>
      </dialog>
    </div>
  );
}
