// Sweeps and trials for tests.

import type { Sweep, SweepRow, Trial } from "../model";

export function rowOf(more: Partial<SweepRow> = {}): SweepRow {
  return {
    uid: "u",
    namespace: "default",
    name: "digits",
    state: "Running",
    message: "",
    progress: null,
    counts: null,
    numTrials: 20,
    metric: "val_loss",
    direction: "Minimize",
    best: null,
    algorithm: "tpe",
    parameterCount: 2,
    created: "2026-01-01T00:00:00Z",
    started: "2026-01-01T00:00:00Z",
    ended: null,
    isSuspended: false,
    isDeleted: false,
    ...more,
  };
}

export function sweepOf(more: Partial<Sweep> = {}): Sweep {
  const space = { isInteger: false, low: null, high: null, choices: [] };
  return {
    ...rowOf(),
    resourceVersion: "1",
    aggregate: "Last",
    settings: [],
    pruning: "",
    pruningSettings: [],
    parallelTrials: 4,
    maxFailedTrials: null,
    parameters: [
      { ...space, name: "lr", kind: "logUniform", low: 1e-4, high: 1e-2 },
      { ...space, name: "optimizer", kind: "categorical", choices: ["adamw", "sgd"] },
    ],
    conditions: [],
    ...more,
  };
}

export function trialOf(number: number, value: number | null, more: Partial<Trial> = {}): Trial {
  return {
    number,
    name: `digits-trial-${number}`,
    uid: `uid-${number}`,
    isThere: true,
    state: "Succeeded",
    phase: "Complete",
    value,
    valueText: value === null ? "" : String(value),
    step: 10,
    progress: null,
    parameters: ["1e-3", "sgd"],
    started: "2026-01-01T00:00:00Z",
    ended: `2026-01-01T00:0${number % 10}:00Z`,
    message: "",
    points: [],
    ...more,
  };
}
