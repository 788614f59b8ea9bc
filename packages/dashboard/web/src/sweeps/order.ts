// The order of trials in their table, and which of them are in it.

import { compareTexts } from "../compare/numbers";
import type { Sweep, Trial, TrialState } from "../model";
import { TRIAL_STATES } from "../model";
import { VALUE, parameterKey } from "./axes";
import { secondsOf } from "./ranking";

export const NUMBER = "number";

type Value = number | string | null;

/** What a column has of a trial; null where it has nothing. */
function valueOf(key: string, sweep: Pick<Sweep, "parameters">, now: number): (trial: Trial) => Value {
  const index = sweep.parameters.findIndex(({ name }) => parameterKey(name) === key);
  if (index >= 0) return ({ parameters }) => parameters[index] ?? null;
  if (key === VALUE) return ({ value }) => value;
  if (key === "step") return ({ step }) => step;
  if (key === "state") return ({ state }) => TRIAL_STATES.indexOf(state);
  if (key === "took") return (trial) => secondsOf(trial, now);
  return ({ number }) => number;
}

/** Sorted by a column; what has no value is last in both directions, and equal ones stay in the order of their numbers. */
export function ordered(trials: readonly Trial[], sweep: Pick<Sweep, "parameters">, { sort, isReversed }: { sort: string; isReversed: boolean }, now: number): Trial[] {
  const value = valueOf(sort || NUMBER, sweep, now);
  const compare = (a: Value, b: Value): number => {
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    const order = typeof a === "number" && typeof b === "number" ? a - b : compareTexts(String(a), String(b));
    return isReversed ? -order : order;
  };
  return [...trials].sort((a, b) => compare(value(a), value(b)) || a.number - b.number);
}

export function countsOf(trials: readonly Trial[]): Record<TrialState, number> {
  const counts = { Running: 0, Succeeded: 0, Failed: 0, Pruned: 0 };
  for (const { state } of trials) if (state in counts) counts[state]++;
  return counts;
}
