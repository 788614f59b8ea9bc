// The axes of the parallel coordinates of a sweep: its parameters as it searches them, and the value.

import { type ParallelAxis, categoryAxis, fieldAxis, numericAxis } from "../compare/axes";
import { numberOf } from "../compare/numbers";
import type { Importance, Sweep, SweepParameter, Trial } from "../model";

export const VALUE = "value";

export function parameterKey(name: string): string {
  return `p:${name}`;
}

/** Parameters whose axes are drawn at first: with the value they are as wide as a screen. */
export const FIRST_AXES = 11;

/** The keys of the axes that are drawn at first: where there are many parameters, those that matter most. */
export function firstAxes(parameters: Sweep["parameters"], importance: Importance | null): ReadonlySet<string> {
  const of = new Map(Object.entries(importance?.method ? importance.of : {}));
  const first = parameters.map(({ name }) => name).sort((a, b) => (of.get(b) ?? 0) - (of.get(a) ?? 0));
  return new Set([...first.slice(0, FIRST_AXES).map(parameterKey), VALUE]);
}

/** The value comes last; a parameter whose values cannot be placed is left out. */
export function axesOf({ parameters, metric }: Pick<Sweep, "parameters" | "metric">, trials: readonly Trial[]): ParallelAxis[] {
  const found = parameters.flatMap((parameter, index) => parameterAxis(parameter, trials.map((trial) => trial.parameters[index] ?? null)) ?? []);
  const values = trials.map(({ value, state }) => (state === "Failed" ? null : value));
  const hasValues = values.some((each) => each !== null);
  return hasValues ? [...found, numericAxis(VALUE, metric, values, { isResult: true, kind: "value" })] : found;
}

function parameterAxis({ name, kind, low, high, choices }: SweepParameter, values: readonly (string | null)[]): ParallelAxis | null {
  const key = parameterKey(name);
  if (kind === "categorical") {
    const others = values.filter((each): each is string => each !== null && !choices.includes(each));
    return categoryAxis(key, name, values, [...new Set([...choices, ...others])].reverse());
  }
  const numbers = values.map((each) => (each === null ? null : numberOf(each)));
  if (kind === "" || low === null || high === null) return fieldAxis({ key, title: name, values });
  return numericAxis(key, name, numbers, { isResult: false, kind: "", isLog: kind === "logUniform", bounds: [low, high] });
}
