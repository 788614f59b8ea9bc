"""Series of sweeps."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from trainer_sweeps.api.optimizationjob import TrialState

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_ENDS: Final = (TrialState.SUCCEEDED, TrialState.FAILED, TrialState.PRUNED)


class SweepSeries:
    """The series of all OptimizationJobs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.trials_started = Counter(
            "trainer_sweep_trials_started_total", "Trials of OptimizationJobs that were created.", registry=registry
        )
        self.trials = Counter(
            "trainer_sweep_trials_total",
            "Trials of OptimizationJobs that have ended, by state: Succeeded, Failed or Pruned.",
            ("state",),
            registry=registry,
        )
        for state in _ENDS:
            self.trials.labels(state.value)
        self.suggestion_seconds = Histogram(
            "trainer_sweep_suggestion_duration_seconds",
            "Time for choosing the parameters of one trial, by algorithm: random, grid, tpe, gp or cmaEs. The first "
            "one of a process imports Optuna.",
            ("algorithm",),
            buckets=_SECONDS,
            registry=registry,
        )
