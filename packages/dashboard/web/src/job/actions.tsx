// Suspend, resume, scale, clone and delete: what the user has the rights to.

import { useEffect, useState } from "preact/hooks";
import { ApiError, request, trainJobPath } from "../api";
import { ENDED, type Job, type Rights } from "../model";
import { Problem } from "../parts";
import { clonePath, go, href, jobPath, onLink } from "../route";
import { Dialog, useKeptFocus } from "../shell/dialog";

export function Actions({ job }: { job: Job }) {
  const [rights, setRights] = useState<Rights | null>(null);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [isAsked, setAsked] = useState(false);
  const root = useKeptFocus<HTMLDivElement>();
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
    <div class="actions" ref={root}>
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
        <button type="button" class="danger" aria-disabled={isBusy} onClick={() => !isBusy && setAsked(true)}>
          Delete ...
        </button>
      )}
      {problem && <Problem>{problem}</Problem>}
      {isAsked && (
        <Dialog labelledBy="delete-title" onClose={() => setAsked(false)}>
          <h2 id="delete-title">Delete {job.name}?</h2>
          <p>Its pods are deleted with it, and with them their logs and metrics.</p>
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

/** Whether the number of nodes may change: that of an elastic training until it ends, of others while suspended. */
export function canScale(job: Pick<Job, "state" | "isDeleted" | "isSuspended" | "bounds">): boolean {
  if (ENDED.has(job.state) || job.isDeleted) return false;
  return job.bounds !== null || job.isSuspended;
}

const MOST = 2 ** 31 - 1;

function Scale({ job, isBusy, onScale }: { job: Job; isBusy: boolean; onScale(nodes: number): void }) {
  const [isOpen, setOpen] = useState(false);
  const { least, most } = job.bounds ?? { least: 1, most: MOST };
  return (
    <>
      <button type="button" aria-disabled={isBusy} onClick={() => !isBusy && setOpen(true)}>
        Scale ...
      </button>
      {isOpen && (
        <Dialog labelledBy="scale-title" onClose={() => setOpen(false)}>
          <h2 id="scale-title">Nodes of {job.name}</h2>
          <form
            class="actions"
            onSubmit={(event) => {
              event.preventDefault();
              onScale((event.currentTarget.elements.namedItem("nodes") as HTMLInputElement).valueAsNumber);
              setOpen(false);
            }}
          >
            <label>
              <span>{job.bounds ? `From ${least} to ${most}` : "At least 1"}</span>{" "}
              <input name="nodes" type="number" min={least} max={most} step={1} required defaultValue={String(job.nodes ?? least)} />
            </label>
            <button type="submit">Scale</button>
            <button type="button" onClick={() => setOpen(false)}>
              Cancel
            </button>
          </form>
        </Dialog>
      )}
    </>
  );
}
