// The trials of a sweep: one in a row, with its parameters as columns.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Highlight } from "../charts/pointer";
import { useNow } from "../clock";
import { pointing, standing } from "../compare/highlight";
import { COMPARED } from "../compare/store";
import type { CompareView } from "../compare/view";
import { duration, short } from "../format";
import type { Sweep, Trial } from "../model";
import { Tone } from "../parts";
import { comparePath, href, onLink } from "../route";
import { toggled } from "../toggled";
import { VALUE, parameterKey } from "./axes";
import { NUMBER } from "./order";
import { labelOf, ranked, secondsOf } from "./ranking";
import { TrialLink } from "./trial_link";

/** Trials that are compared where none are chosen. */
const BEST = 5;

interface TrialTableProperties {
  sweep: Sweep;
  /** In their order. */
  rows: readonly Trial[];
  looks: ReadonlyMap<number, string>;
  best: Trial | null;
  highlight: Highlight;
  view: Pick<CompareView, "sort" | "isReversed">;
  onSort(key: string): void;
}

export function TrialTable({ sweep, rows, looks, best, highlight, view, onSort }: TrialTableProperties) {
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const head = (key: string, title: ComponentChildren, kind = "") => <Head key={key} name={key} view={view} kind={kind} title={title} onSort={onSort} />;
  return (
    <>
      <div class="trial-tools">
        <p class="count" role="status">
          {rows.length} {rows.length === 1 ? "trial" : "trials"}
        </p>
        <CompareLink sweep={sweep} rows={rows} chosen={chosen} />
      </div>
      <div class="scroll compare-table trial-table" tabIndex={0} role="region" aria-label="Trials">
        <table>
          <thead>
            <tr>
              {head(NUMBER, "Trial", "first")}
              {head("state", "State")}
              {head(VALUE, sweep.metric, "number")}
              {head("step", "Step", "number")}
              {head("took", "Took", "number")}
              {sweep.parameters.map(({ name, kind }, index) => head(parameterKey(name), name, `${kind === "categorical" ? "" : "number"}${index === 0 ? " opens" : ""}`))}
            </tr>
          </thead>
          <tbody>
            {rows.map((trial) => (
              <Row
                key={trial.number}
                sweep={sweep}
                trial={trial}
                look={looks.get(trial.number) ?? ""}
                isBest={trial === best}
                isChosen={chosen.has(trial.number)}
                highlight={highlight}
                onChoose={() => setChosen((before) => toggled(before, trial.number))}
              />
            ))}
          </tbody>
        </table>
        {rows.length === 0 && <p class="nothing">No trial is in this state and on these parts of the axes.</p>}
      </div>
    </>
  );
}

/** Whether the cluster or the history has its TrainJob. */
function isKept({ isThere, uid }: Trial): boolean {
  return isThere || uid !== "";
}

/** To the comparison of the chosen trials, or of the best ones. */
function CompareLink({ sweep, rows, chosen }: { sweep: Sweep; rows: readonly Trial[]; chosen: ReadonlySet<number> }) {
  const there = rows.filter(isKept);
  const isChosen = chosen.size > 0;
  const compared = (isChosen ? there.filter(({ number }) => chosen.has(number)) : ranked(there, sweep.direction).slice(0, BEST)).slice(0, COMPARED);
  if (compared.length < (isChosen ? 1 : 2)) return null;
  const ids = compared.map(({ name, uid, isThere }) => ({ namespace: sweep.namespace, name, uid, isThere }));
  const path = comparePath(
    ids.filter(({ isThere }) => isThere),
    ids.filter(({ isThere }) => !isThere),
  );
  return (
    <a class="button" href={href(path)} onClick={onLink}>
      {isChosen ? `Compare ${compared.length}` : `Compare the best ${compared.length}`}
    </a>
  );
}

interface HeadProperties {
  name: string;
  title: ComponentChildren;
  kind: string;
  view: Pick<CompareView, "sort" | "isReversed">;
  onSort(key: string): void;
}

function Head({ name, title, kind, view, onSort }: HeadProperties) {
  const isSorted = (view.sort || NUMBER) === name;
  return (
    <th scope="col" class={kind} aria-sort={isSorted ? (view.isReversed ? "descending" : "ascending") : undefined}>
      <button type="button" title={typeof title === "string" ? title : undefined} onClick={() => onSort(name)}>
        <span class="heading">{title}</span>
        <span class="arrow" aria-hidden="true">
          {isSorted ? (view.isReversed ? "↓" : "↑") : ""}
        </span>
      </button>
    </th>
  );
}

interface RowProperties {
  sweep: Sweep;
  trial: Trial;
  look: string;
  isBest: boolean;
  isChosen: boolean;
  highlight: Highlight;
  onChoose(): void;
}

function Row({ sweep, trial, look, isBest, isChosen, highlight, onChoose }: RowProperties) {
  const label = labelOf(trial);
  return (
    <tr class={standing(highlight, label)} {...pointing(highlight, label)}>
      <th scope="row" class={`first ${look}`}>
        <span class="name">
          <input type="checkbox" aria-label={`Choose ${label}`} checked={isChosen} disabled={!isKept(trial)} onChange={onChoose} />
          <span class="swatch" aria-hidden="true" />
          <TrialLink sweep={sweep} trial={trial}>
            {label}
          </TrialLink>
        </span>
      </th>
      <td class="trial-state">
        <Tone of={trial.state} />
        {trial.state === "Running" && trial.phase && trial.phase !== "Running" && <span class="quiet"> {trial.phase}</span>}
        {trial.state === "Running" && trial.progress !== null && <span class="quiet"> {trial.progress} %</span>}
        {trial.message && (
          <span class="reason quiet" title={trial.message}>
            {trial.message}
          </span>
        )}
      </td>
      <td class="number result" title={trial.valueText}>
        <span class={isBest ? "main best" : "main"}>
          {isBest && <span class="mark">best</span>}
          <span class={trial.state === "Succeeded" ? "" : "quiet"}>{trial.value === null ? trial.valueText || "–" : short(trial.value)}</span>
        </span>
      </td>
      <td class="number">{trial.step ?? ""}</td>
      <td class="number">{trial.state === "Running" && !trial.ended ? <Since of={trial} /> : took(trial, NaN)}</td>
      {sweep.parameters.map(({ name, kind }, index) => {
        const value = trial.parameters[index] ?? null;
        return (
          <td key={name} class={`value${kind === "categorical" ? "" : " number"}${index === 0 ? " opens" : ""}`} title={value ?? undefined}>
            {value === null ? <span class="quiet">–</span> : shortened(value, kind)}
          </td>
        );
      })}
    </tr>
  );
}

/** How long a trial runs by now. */
function Since({ of }: { of: Trial }) {
  return <>{took(of, useNow())}</>;
}

function took(trial: Trial, now: number): string {
  const seconds = secondsOf(trial, now);
  return seconds === null ? "" : duration(seconds);
}

/** A number as people read it; its cell has all digits in its title. */
function shortened(value: string, kind: string): string {
  const number = Number(value);
  return kind !== "categorical" && value !== "" && Number.isFinite(number) ? short(number) : value;
}
