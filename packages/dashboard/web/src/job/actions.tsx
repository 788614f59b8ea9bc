// Suspend, resume, scale, clone and delete, as far as the user's rights go.

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, request, trainJobPath } from "../api";
import { ENDED, type Job, type Rights } from "../model";
import { Problem } from "../parts";
import { clonePath, go, href, jobPath, onLink } from "../route";

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
  async function change(method: string, at: string, further: object = {}): Promise<void> {
    setBusy(true);
    setProblem("");
    try {
      await request(method, at, { uid: job.uid, ...further });
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
    }
    setBusy(false);
  }
  /** Create a copy, as `Clone and edit` does without a change. */
  async function retry(): Promise<void> {
    setBusy(true);
    setProblem("");
    try {
      const copy = await request<{ yaml: string }>("GET", `${path}/copy`);
      const made = await request<{ namespace: string; name: string }>("POST", "/api/trainjobs", copy);
      go(jobPath(made.namespace, made.name));
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
    }
    setBusy(false);
  }
  return (
    <div class="actions">
      {rights?.suspend &&
        suspensions(job).map((verb) => (
          <button key={verb} type="button" disabled={isBusy} onClick={() => void change("POST", `${path}/${verb}`)}>
            {verb === "resume" ? "Resume" : "Suspend"}
          </button>
        ))}
      {rights?.suspend && canScale(job) && (
        <Scale job={job} isBusy={isBusy} onScale={(nodes) => void change("POST", `${path}/scale`, { nodes })} />
      )}
      {rights?.create && ENDED.has(job.state) && (
        <button type="button" disabled={isBusy} onClick={() => void retry()}>
          {job.state === "Failed" ? "Retry" : "Run again"}
        </button>
      )}
      {rights?.create && (
        <a class="button" href={href(clonePath(job))} onClick={onLink}>
          Clone and edit
        </a>
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

/** Whether to suspend or to resume; both where somebody else has suspended the JobSet, such as a queue that it waits in. */
export function suspensions(
  job: Pick<Job, "state" | "isDeleted" | "isSuspended" | "conditions">,
): ("suspend" | "resume")[] {
  if (ENDED.has(job.state) || job.isDeleted) return [];
  if (job.isSuspended) return ["resume"];
  const isHeld = job.conditions.some(
    (each) => each.type === "Pending" && each.status === "True" && each.reason === "JobSetSuspended",
  );
  return isHeld ? ["suspend", "resume"] : ["suspend"];
}

/** Whether the number of nodes may change: that of an elastic training until it ends, of others before they begin. */
export function canScale(job: Pick<Job, "state" | "isDeleted" | "isSuspended" | "bounds" | "started">): boolean {
  if (ENDED.has(job.state) || job.isDeleted) return false;
  return job.bounds !== null || (job.isSuspended && !job.started);
}

const MOST = 2 ** 31 - 1;

function Scale({ job, isBusy, onScale }: { job: Job; isBusy: boolean; onScale(nodes: number): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const { least, most } = job.bounds ?? { least: 1, most: MOST };
  const open = () => {
    input.current!.value = String(job.nodes ?? least);
    dialog.current?.showModal();
  };
  return (
    <>
      <button type="button" disabled={isBusy} onClick={open}>
        Scale ...
      </button>
      <dialog ref={dialog} aria-labelledby="scale-title">
        <h2 id="scale-title">Nodes of {job.name}</h2>
        <form
          class="actions"
          onSubmit={(event) => {
            event.preventDefault();
            dialog.current?.close();
            onScale(input.current!.valueAsNumber);
          }}
        >
          <label>
            <span>{job.bounds ? `From ${least} to ${most}` : "At least 1"}</span>{" "}
            <input ref={input} type="number" min={least} max={most} step={1} required />
          </label>
          <button type="submit">Scale</button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </form>
      </dialog>
    </>
  );
}
