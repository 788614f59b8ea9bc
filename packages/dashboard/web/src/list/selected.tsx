// What can be done to the TrainJobs that are selected: asked about by name, and answered for each.

import { useEffect, useRef, useState } from "preact/hooks";
import { COMPARED } from "../compare/store";
import type { Listed } from "../model";
import { comparePath, href, onLink } from "../route";
import { toast } from "../shell/toasts";
import { type Action, affected, doAll } from "./bulk";
import { id } from "./filters";

const NAMED = 12;
/** Most results that are said one by one. */
const EACH = 4;
const DONE: Record<Action, string> = { suspend: "Suspended", resume: "Resumed", delete: "Deleted" };
const ASKED: Record<Action, string> = { suspend: "Suspend", resume: "Resume", delete: "Delete" };

/** What is asked about, with the TrainJobs of that moment: the list goes on to change. */
interface Asked {
  action: Action;
  rows: readonly Listed[];
}

interface SelectedProperties {
  rows: readonly Listed[];
  onClear(): void;
}

export function Selected({ rows, onClear }: SelectedProperties) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [isBusy, setBusy] = useState(false);
  if (rows.length === 0) return null;
  async function run({ action, rows }: Asked): Promise<void> {
    setAsked(null);
    setBusy(true);
    await act(action, affected(action, rows));
    setBusy(false);
    onClear();
  }
  return (
    <div class="selected-bar" role="group" aria-label="Selected TrainJobs">
      <strong>{rows.length} selected</strong>
      {rows.length > 1 && rows.length <= COMPARED ? (
        <a class="button" href={href(comparePath(rows))} onClick={onLink}>
          Compare
        </a>
      ) : (
        <button type="button" disabled title={`2 to ${COMPARED} can be compared`}>
          Compare
        </button>
      )}
      {(["suspend", "resume", "delete"] as const).map((action) => (
        <button
          key={action}
          type="button"
          class={action === "delete" ? "danger" : ""}
          disabled={isBusy || affected(action, rows).length === 0}
          onClick={() => setAsked({ action, rows })}
        >
          {ASKED[action]} ...
        </button>
      ))}
      <button type="button" class="plain" onClick={onClear}>
        Clear selection
      </button>
      {asked && <Confirm {...asked} onConfirm={() => void run(asked)} onClose={() => setAsked(null)} />}
    </div>
  );
}

/** Do it, and say what came of it: of few of each, of many of those that were refused. */
async function act(action: Action, rows: readonly Listed[]): Promise<void> {
  let done = 0;
  await doAll(action, rows, ({ row, problem }) => {
    if (problem) toast(`${row.name}: ${problem}`, "bad");
    else if (++done && rows.length <= EACH) toast(`${DONE[action]} ${row.name}`);
  });
  if (rows.length > EACH) toast(`${DONE[action]} ${done} of ${rows.length} TrainJobs`, done === rows.length ? "good" : "bad");
}

interface ConfirmProperties extends Asked {
  onConfirm(): void;
  onClose(): void;
}

function Confirm({ action, rows, onConfirm, onClose }: ConfirmProperties) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const changed = affected(action, rows);
  const others = rows.length - changed.length;
  return (
    <dialog ref={dialog} aria-labelledby="bulk-title" onClose={onClose}>
      <h2 id="bulk-title">
        {ASKED[action]} {changed.length} {changed.length === 1 ? "TrainJob" : "TrainJobs"}?
      </h2>
      <ul class="affected">
        {changed.slice(0, NAMED).map((row) => (
          <li key={id(row)}>
            {row.name} <span class="namespace">{row.namespace}</span>
          </li>
        ))}
        {changed.length > NAMED && <li class="quiet">and {changed.length - NAMED} more</li>}
      </ul>
      {action === "delete" && <p>Their pods are deleted with them, and with the pods their logs and metrics.</p>}
      {action === "suspend" && <p>Their pods are deleted until they are resumed.</p>}
      {others > 0 && <p class="quiet">{others} of the selected stay as they are: there is nothing to {action}.</p>}
      <div class="actions">
        <button type="button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
        <button type="button" class={action === "delete" ? "danger" : "primary"} onClick={onConfirm}>
          {ASKED[action]}
        </button>
      </div>
    </dialog>
  );
}
