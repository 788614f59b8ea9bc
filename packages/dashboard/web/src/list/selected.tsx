// What can be done to the TrainJobs that are selected: asked about by name, and answered for each.

import { useState } from "preact/hooks";
import { COMPARED } from "../compare/store";
import type { Listed } from "../model";
import { comparePath, href, onLink } from "../route";
import { Dialog, useKeptFocus } from "../shell/dialog";
import { toast } from "../shell/toasts";
import { ACTIONS, type Action, type KnownRights, affected, doAll, isUnknown, outcome, permitted, refusals } from "./bulk";
import { id } from "./filters";
import { useRights } from "./rights";

const NAMED = 12;
const ASKED: Record<Action, string> = { suspend: "Suspend", resume: "Resume", delete: "Delete" };
const REFUSALS = "bulk-refusals";

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
  const { rights, forget } = useRights([...new Set(rows.map(({ namespace }) => namespace))]);
  return rows.length > 0 ? <Bar rows={rows} rights={rights} onClear={onClear} onRefusal={forget} /> : null;
}

function Bar({ rows, rights, onClear, onRefusal }: SelectedProperties & { rights: KnownRights; onRefusal(): void }) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [isBusy, setBusy] = useState(false);
  const root = useKeptFocus<HTMLDivElement>();
  const refused = refusals(rows, rights);
  async function run({ action, rows }: Asked): Promise<void> {
    setAsked(null);
    setBusy(true);
    const { text, tone } = outcome(action, await doAll(action, permitted(action, rows, rights)));
    toast(text, tone);
    if (tone === "bad") onRefusal();
    setBusy(false);
    onClear();
  }
  return (
    <div class="selected-bar" role="group" aria-label="Selected TrainJobs" ref={root}>
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
      {ACTIONS.map((action) => {
        const isOff = isBusy || isUnknown(action, rows, rights) || permitted(action, rows, rights).length === 0;
        return (
          <button
            key={action}
            type="button"
            class={action === "delete" ? "danger" : ""}
            aria-disabled={isOff}
            aria-describedby={refused.length > 0 ? REFUSALS : undefined}
            onClick={() => !isOff && setAsked({ action, rows })}
          >
            {ASKED[action]} ...
          </button>
        );
      })}
      <button type="button" class="plain" onClick={onClear}>
        Clear selection
      </button>
      {refused.length > 0 && (
        <p class="quiet" id={REFUSALS}>
          {refused.join(" ")}
        </p>
      )}
      {asked && <Confirm {...asked} rights={rights} onConfirm={() => void run(asked)} onClose={() => setAsked(null)} />}
    </div>
  );
}

interface ConfirmProperties extends Asked {
  rights: KnownRights;
  onConfirm(): void;
  onClose(): void;
}

function Confirm({ action, rows, rights, onConfirm, onClose }: ConfirmProperties) {
  const changed = permitted(action, rows, rights);
  const forbidden = affected(action, rows).length - changed.length;
  const others = rows.length - changed.length - forbidden;
  return (
    <Dialog labelledBy="bulk-title" onClose={onClose}>
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
      {forbidden > 0 && <p class="quiet">{forbidden} of the selected stay as they are: you may not {action} them.</p>}
      {others > 0 && <p class="quiet">{others} of the selected stay as they are: there is nothing to {action}.</p>}
      <div class="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class={action === "delete" ? "danger" : "primary"} onClick={onConfirm}>
          {ASKED[action]}
        </button>
      </div>
    </Dialog>
  );
}
