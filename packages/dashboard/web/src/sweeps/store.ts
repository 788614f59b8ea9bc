// What the list of sweeps and the page of one show, each kept by a stream.

import { sweepApiPath } from "../api";
import { type Rows, applied } from "../list/store";
import type { Importance, StreamProblem, Sweep, SweepRow, Trial } from "../model";
import type { ServerEvent } from "../sse";
import { useStream } from "../stream";

export interface SweepListing {
  rows: ReadonlyMap<string, SweepRow>;
  isLoaded: boolean;
  problem: string;
}

const NO_ROWS: SweepListing = { rows: new Map(), isLoaded: false, problem: "" };

export function rowsReceived(listing: SweepListing, { name, data }: ServerEvent): SweepListing {
  if (name === "rows") return { ...listing, rows: applied(listing.rows, data as Rows<SweepRow>), isLoaded: true };
  return name === "problem" ? { ...listing, problem: (data as StreamProblem).text } : listing;
}

export function useSweeps(isShown: boolean): SweepListing {
  return useStream(isShown ? "/api/sweeps" : null, NO_ROWS, rowsReceived);
}

/** A sweep with its trials, of the cluster or of a recording. */
export interface SweepContent {
  sweep: Sweep | null;
  /** By number; null before they are known. */
  trials: readonly Trial[] | null;
  importance: Importance | null;
}

export interface SweepState extends SweepContent {
  /** What the server could not get from the cluster. */
  problems: string[];
  isGone: boolean;
  problem: string;
}

export const EMPTY: SweepState = { sweep: null, trials: null, importance: null, problems: [], isGone: false, problem: "" };

interface TrialNews {
  all?: Trial[];
  changed?: Trial[];
  gone?: number[];
}

/** Trials that have not changed stay the same objects. */
export function withTrials(before: readonly Trial[] | null, { all, changed = [], gone = [] }: TrialNews): readonly Trial[] {
  if (all) return all;
  const next = new Map((before ?? []).map((trial) => [trial.number, trial]));
  for (const number of gone) next.delete(number);
  for (const trial of changed) next.set(trial.number, trial);
  return [...next.values()].sort((a, b) => a.number - b.number);
}

export function received(state: SweepState, { name, data }: ServerEvent): SweepState {
  switch (name) {
    case "sweep":
      return { ...state, sweep: data as Sweep, isGone: false };
    case "trials":
      return { ...state, trials: withTrials(state.trials, data as TrialNews) };
    case "importance":
      return { ...state, importance: data as Importance };
    case "problems":
      return { ...state, problems: data as string[] };
    case "problem":
      return { ...state, problem: (data as StreamProblem).text };
    case "gone":
      return { ...state, isGone: true, problem: "" };
    default:
      return state;
  }
}

export function useSweep(namespace: string, name: string): SweepState {
  return useStream(sweepApiPath({ namespace, name }), EMPTY, received, ({ isGone }) => isGone);
}

