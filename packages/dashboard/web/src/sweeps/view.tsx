// What a sweep has reached: the same of one on the cluster and of one that was recorded.

import { useMemo, useState } from "preact/hooks";
import type { Highlight } from "../charts/pointer";
import { KeptChips } from "../compare/page";
import { Parallel } from "../compare/parallel";
import { type Sweep, TRIAL_STATES, type Trial, type TrialState } from "../model";
import { go } from "../route";
import { FIRST_AXES } from "./axes";
import { TrialCurves } from "./curves";
import { ImportanceBars } from "./importance";
import { countsOf } from "./order";
import { ProgressChart } from "./progress_chart";
import { bestOf, labelOf, looks, ranked } from "./ranking";
import { type Selection, useSelection } from "./selection";
import type { SweepContent } from "./store";
import { Best } from "./summary";
import { TrialTable } from "./table";
import { useTrialPath } from "./trial_link";

interface SweepViewProperties {
  content: SweepContent & { sweep: Sweep };
  /** Whether a trial can be trained again: its sweep is on the cluster. */
  canCopy: boolean;
}

export function SweepView({ content, canCopy }: SweepViewProperties) {
  const { trials } = content;
  return trials ? <Known content={{ ...content, trials }} canCopy={canCopy} /> : <p role="status">Loading ...</p>;
}

function Known({ content: { sweep, trials, importance }, canCopy }: SweepViewProperties & { content: { trials: readonly Trial[] } }) {
  const [label, setLabel] = useState("");
  const highlight: Highlight = { label, set: setLabel };
  const look = useMemo(() => looks(trials, sweep.direction), [trials, sweep.direction]);
  const best = useMemo(() => bestOf(sweep, trials), [trials, sweep]);
  const selection = useSelection(sweep, trials, importance);
  return (
    <>
      <Best sweep={sweep} best={best} canCopy={canCopy} />
      <div class="sweep-columns">
        <ProgressChart sweep={sweep} trials={trials} looks={look} highlight={highlight} />
        <ImportanceBars sweep={sweep} importance={importance} trials={trials} />
      </div>
      <section aria-labelledby="trials-title">
        <h2 id="trials-title">Trials</h2>
        <StateChips trials={trials} state={selection.state} onState={selection.setState} />
        {trials.length === 0 && <p class="nothing">There are no trials yet.</p>}
        <Coordinates sweep={sweep} trials={trials} looks={look} selection={selection} highlight={highlight} />
        {trials.length > 0 && (
          <TrialTable sweep={sweep} rows={selection.rows} looks={look} best={best} highlight={highlight} view={selection.view} onSort={selection.sort} />
        )}
      </section>
      <TrialCurves sweep={sweep} trials={trials} shown={selection.rows} looks={look} best={best} highlight={highlight} />
    </>
  );
}

interface CoordinatesProperties {
  sweep: Sweep;
  trials: readonly Trial[];
  looks: ReadonlyMap<number, string>;
  selection: Selection;
  highlight: Highlight;
}

/** Parallel coordinates, with what is kept of them above and the meaning of their colours below. */
function Coordinates({ sweep, trials, looks, selection, highlight }: CoordinatesProperties) {
  const toTrial = useTrialPath();
  const lines = useMemo(() => trials.map((trial) => ({ id: String(trial.number), label: labelOf(trial), look: looks.get(trial.number) ?? "" })), [trials, looks]);
  const { axes, drawn, kept, rows, hasAllAxes, fits, keep, keepAll, setAllAxes } = selection;
  if (trials.length < 2 || axes.length < 2) return null;
  const open = (index: number) => {
    const to = toTrial(sweep, trials[index]!);
    if (to) go(to);
  };
  return (
    <>
      <KeptChips what="trials" kept={kept} axes={axes} count={[rows.length, trials.length]} onKeep={keep} onAll={keepAll} />
      <Parallel lines={lines} axes={drawn} kept={kept} isShown={fits} highlight={highlight} onKeep={keep} onOpen={open} />
      <div class="under-parallel">
        <ShadeLegend sweep={sweep} trials={trials} />
        {sweep.parameters.length > FIRST_AXES && (
          <label class="check">
            <input type="checkbox" checked={hasAllAxes} onChange={(event) => setAllAxes(event.currentTarget.checked)} />
            <span>All {sweep.parameters.length} parameters</span>
          </label>
        )}
      </div>
    </>
  );
}

const CHIPS: Record<TrialState, string> = { Running: "running", Succeeded: "done", Failed: "failed", Pruned: "pruned" };

function StateChips({ trials, state, onState }: { trials: readonly Trial[]; state: TrialState | null; onState(state: TrialState | null): void }) {
  const counts = countsOf(trials);
  return (
    <div class="chips" role="group" aria-label="State of trials">
      <button type="button" class="chip" aria-pressed={state === null} onClick={() => onState(null)}>
        All<span class="number">{trials.length}</span>
      </button>
      {TRIAL_STATES.map((each) => (
        <button key={each} type="button" class={`chip ${CHIPS[each]}`} aria-pressed={state === each} onClick={() => onState(state === each ? null : each)}>
          {each}
          <span class="number">{counts[each]}</span>
        </button>
      ))}
    </div>
  );
}

/** What the colours of the lines say. */
function ShadeLegend({ sweep, trials }: { sweep: Sweep; trials: readonly Trial[] }) {
  const order = ranked(trials, sweep.direction);
  const states = TRIAL_STATES.filter((each) => each !== "Succeeded" && trials.some(({ state }) => state === each));
  return (
    <p class="shade-legend quiet">
      {order.length > 0 && (
        <span>
          best <span class="ramp" aria-hidden="true" /> worst of {order.length}, by rank
        </span>
      )}
      {states.map((each) => (
        <span key={each}>
          <span class={`swatch trial-${each.toLowerCase()}`} aria-hidden="true" /> {each.toLowerCase()}
        </span>
      ))}
    </p>
  );
}
