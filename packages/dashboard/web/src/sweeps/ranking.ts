// Which trials are better than others, and how a value looks.

import type { Sweep, Trial } from "../model";

/** How many colours there are from the best to the worst. */
export const SHADES = 10;

/** The succeeded trials, the best first; of equal ones the first. */
export function ranked(trials: readonly Trial[], direction: Sweep["direction"]): Trial[] {
  const sign = direction === "Maximize" ? -1 : 1;
  return trials.filter(({ state, value }) => state === "Succeeded" && value !== null).sort((a, b) => sign * (a.value! - b.value!) || a.number - b.number);
}

/** The best trial: as the sweep says, or by the values where it says nothing. */
export function bestOf({ best, direction }: Pick<Sweep, "best" | "direction">, trials: readonly Trial[]): Trial | null {
  const named = best && trials.find(({ name, number }) => name === best.trainJob || number === best.number);
  return named ?? ranked(trials, direction)[0] ?? null;
}

/** The class of each trial by its number: a shade by its rank, since one very bad value would make all others the same. */
export function looks(trials: readonly Trial[], direction: Sweep["direction"]): Map<number, string> {
  const order = ranked(trials, direction);
  const found = new Map(trials.map(({ number, state }) => [number, `trial-${state.toLowerCase()}`]));
  order.forEach(({ number }, place) => found.set(number, `shade-${shadeOf(place, order.length)}`));
  return found;
}

function shadeOf(place: number, count: number): number {
  return count < 2 ? 0 : Math.round((place / (count - 1)) * (SHADES - 1));
}

export interface Mark {
  trial: Trial;
  x: number;
  y: number | null;
}

export interface Progression {
  marks: Mark[];
  /** The best so far: where it became so, and its value. */
  best: [x: number, value: number][];
  /** Over what: seconds since the sweep began, or numbers of trials. */
  over: "time" | "number";
}

/** The ended trials over time, where the end of all is known, else by number; with the best value up to each. */
export function progression(trials: readonly Trial[], { direction, started }: Pick<Sweep, "direction" | "started">, wanted: "time" | "number"): Progression {
  const ended = trials.filter(({ state }) => state !== "Running");
  const start = Date.parse(started ?? "");
  const since = (trial: Trial) => (Date.parse(trial.ended ?? "") - start) / 1000;
  const over = wanted === "time" && canBeOverTime(trials, { started }) ? "time" : "number";
  const marks = ended
    .map((trial): Mark => ({ trial, x: over === "time" ? Math.max(since(trial), 0) : trial.number, y: trial.state === "Failed" ? null : trial.value }))
    .sort((a, b) => a.x - b.x || a.trial.number - b.trial.number);
  const best: [number, number][] = [];
  for (const { trial, x, y } of marks) {
    if (trial.state !== "Succeeded" || y === null) continue;
    const last = best.at(-1)?.[1];
    if (last === undefined || (direction === "Maximize" ? y > last : y < last)) best.push([x, y]);
  }
  return { marks, best, over };
}

/** Whether it is known when each trial has ended. */
export function canBeOverTime(trials: readonly Trial[], { started }: Pick<Sweep, "started">): boolean {
  const ended = trials.filter(({ state }) => state !== "Running");
  return ended.length > 0 && Number.isFinite(Date.parse(started ?? "")) && ended.every((trial) => Number.isFinite(Date.parse(trial.ended ?? "")));
}

/** How long a trial ran, in seconds; of one that runs, until now. */
export function secondsOf({ started, ended, state }: Trial, now: number): number | null {
  const until = ended ? Date.parse(ended) : state === "Running" ? now : NaN;
  const seconds = (until - Date.parse(started ?? "")) / 1000;
  return Number.isFinite(seconds) ? Math.max(seconds, 0) : null;
}

export function labelOf({ number }: Pick<Trial, "number">): string {
  return `Trial ${number}`;
}
