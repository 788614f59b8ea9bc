"""The results of a run, as they are written to the JSON file."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from benchmarks.measurement import Measurement


class TrialResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of one trial: measurements, a reason why it does not apply, or an error."""

    scenario: str
    variant: str
    subject: str
    objects: int = 0
    """Objects in the API server."""
    measurements: list[Measurement] = []
    not_applicable: str = ""
    error: str = ""

    def value(self, measurement: str) -> float | None:
        """The number with this name."""
        return next((found.value for found in self.measurements if found.name == measurement), None)


class Machine(msgspec.Struct, frozen=True):
    """Where and with what it was measured; the numbers mean little without it."""

    cpu: str
    cpus: int
    memory_bytes: int
    load_average: float
    """Of the minute before the run; anything much above 0 disturbs the numbers."""
    kernel: str
    python: str
    versions: dict[str, str]


class TargetResult(msgspec.Struct, frozen=True):
    """A target of the project and how far it is met; never an error, since machines differ."""

    target: str
    measured: float | None
    """None when the trials that it needs were not run."""
    is_met: bool


class Results(msgspec.Struct, frozen=True):
    """One run."""

    machine: Machine
    trials: list[TrialResult]
    targets: list[TargetResult] = []

    def find(self, scenario: str, variant: str, subject: str) -> TrialResult | None:
        """The trial with these names."""
        return next(
            (
                trial
                for trial in self.trials
                if (trial.scenario, trial.variant, trial.subject) == (scenario, variant, subject)
            ),
            None,
        )

    @property
    def errors(self) -> Iterator[TrialResult]:
        """Trials that failed."""
        return (trial for trial in self.trials if trial.error)
