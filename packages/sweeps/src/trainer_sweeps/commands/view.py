"""A sweep as commands show it: the OptimizationJob, and its trials that have ended or run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Final, Self

from trainer.api.metric_curve import number_of
from trainer.api.optimization import SWEEP_LABEL, condition_of, state_of
from trainer.cli.jobs.state import JobState
from trainer.framework.status.status import UNTOUCHED
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import (
    Object,
    is_controlled_by,
    mapping_at,
    metadata_of,
    name_of,
    namespace_of,
    objects_in,
)
from trainer.kube.selection import Selection
from trainer.view.row import ENDS
from trainer_sweeps.api.optimizationjob import (
    Direction,
    EndedTrial,
    Objective,
    OptimizationJob,
    OptimizationJobSpec,
    State,
    TrialState,
)
from trainer_sweeps.search.suggestion import AlgorithmUnavailableError, number_of_trials
from trainer_sweeps.trials.trial import Trial, best, reported_metrics

_HELD: Final = frozenset({"pending", "suspended", "blocked", "stopping", "stalled"})
"""States of TrainJobs that are counted by themselves; all others count as running."""
_ENDS: Final = (TrialState.SUCCEEDED, TrialState.FAILED, TrialState.PRUNED)


@dataclass(frozen=True, slots=True)
class ShownTrial:
    """A trial, and the state of its TrainJob."""

    trial: Trial
    job: JobState | None = None
    """None: the TrainJob is deleted."""
    reported: Sequence[str] = ()
    """Names of the metrics that it has reported last."""

    @property
    def word(self) -> str:
        """How it has ended, else the state of its TrainJob."""
        return str(self.trial.state.value) if self.trial.has_ended or self.job is None else self.job.word

    @property
    def seconds(self) -> float | None:
        """How long it took; None where that is not known, as while it runs."""
        trial = self.trial
        return None if trial.started is None or trial.ended is None else (trial.ended - trial.started).total_seconds()


@dataclass(frozen=True)
class SweepView:
    """A sweep at one moment."""

    obj: Object
    spec: OptimizationJobSpec
    trials: Sequence[ShownTrial]
    """By number."""
    now: datetime

    @classmethod
    def of(cls, obj: Object, train_jobs: Iterable[Object], now: datetime) -> Self:
        """The sweep of an OptimizationJob; those of the TrainJobs count that it controls.

        What has ended is as the status says it, also where the TrainJob has changed since, or is gone.

        Raises:
            InvalidObjectError: it does not fit the model.
        """
        spec = OptimizationJob.from_object({**obj, "status": None}).spec
        objective = spec.objectives[0]
        found: dict[int, ShownTrial] = {}
        for job in train_jobs:
            trial = Trial.of(job, objective, now)
            if trial.number and is_controlled_by(job, obj):
                found[trial.number] = ShownTrial(trial, JobState.of(job), reported_metrics(job))
        for record in _records(obj):
            trial = Trial.of_record(name_of(obj), record, [each.name for each in spec.parameters], objective)
            seen = found.get(record.number)
            if seen is not None:
                trial = replace(trial, curve=seen.trial.curve, started=seen.trial.started, ended=seen.trial.ended)
            found[record.number] = ShownTrial(trial, seen.job if seen is not None else None)
        return cls(obj, spec, tuple(found[number] for number in sorted(found)), now)

    @property
    def name(self) -> str:
        """Its name."""
        return name_of(self.obj)

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return namespace_of(self.obj)

    @property
    def objective(self) -> Objective:
        """What it optimizes."""
        return self.spec.objectives[0]

    @property
    def parameters(self) -> list[str]:
        """Names of its parameters."""
        return [each.name for each in self.spec.parameters]

    @cached_property
    def state(self) -> str:
        """The state in one word."""
        return word_of(self.obj)

    @property
    def has_ended(self) -> bool:
        """Whether it is complete or has failed."""
        return self.state in ENDS

    @property
    def message(self) -> str:
        """Why it is blocked or has failed; empty where there is nothing to explain."""
        if self.state not in {State.BLOCKED, State.FAILED}:
            return ""
        condition = condition_of(self.obj, self.state)
        return str(condition.get("message") or condition.get("reason") or "")

    @property
    def total(self) -> int:
        """How many trials it has in all; a grid has no more than combinations."""
        try:
            return number_of_trials(self.spec)
        except AlgorithmUnavailableError:  # its condition says so
            return self.spec.num_trials

    def count(self, state: TrialState) -> int:
        """How many trials are in a state."""
        return sum(each.trial.state is state for each in self.trials)

    @property
    def counts(self) -> str:
        """Such as `2 running, 1 pending, 4 succeeded`; empty without trials."""
        words = [each.word.lower() for each in self.trials if not each.trial.has_ended]
        counted = Counter(word if word in _HELD else "running" for word in words)
        counted.update({state.value.lower(): self.count(state) for state in _ENDS})
        return ", ".join(f"{number} {word}" for word, number in counted.items() if number)

    @cached_property
    def ended(self) -> int:
        """How many trials have ended."""
        return sum(each.trial.has_ended for each in self.trials)

    @cached_property
    def best(self) -> Trial | None:
        """The best trial so far."""
        return best((each.trial for each in self.trials), self.objective)

    @property
    def best_value(self) -> str:
        """The best value so far; empty without one."""
        return (self.best.value or "") if self.best is not None else ""

    @property
    def percentage(self) -> int:
        """Share of the trials that have ended."""
        return min(100 * self.ended // self.total, 100) if self.total else 100

    @property
    def remaining_seconds(self) -> float | None:
        """An estimate by what trials say of themselves, else by how long others took; None: not known, or no second."""
        took = [each.seconds for each in self.trials if each.seconds is not None]
        if self.has_ended or not took:
            return None
        mean = sum(took) / len(took)
        running = [each for each in self.trials if not each.trial.has_ended]
        waiting = max(self.total - len(self.trials), 0)
        left = mean * waiting + sum(self._left_of(each, mean) for each in running)
        at_once = max(min(self.spec.parallel_trials, waiting + len(running)), 1)
        return left / at_once if left >= at_once else None

    def _left_of(self, shown: ShownTrial, mean: float) -> float:
        """Seconds that a trial has to run, if it is not pruned; 0 where it has taken longer than others."""
        said = shown.job.progress.remaining_seconds if shown.job is not None and shown.job.is_going_on else None
        if said is not None:
            return said
        started = shown.trial.started
        return max(mean - (self.now - started).total_seconds(), 0.0) if started is not None else mean

    @property
    def elapsed_seconds(self) -> float:
        """How long it has run, or ran."""
        status = mapping_at(self.obj, "status")
        start = status.get("startTime") or metadata_of(self.obj).get("creationTimestamp")
        end = parse_timestamp(status["completionTime"]) if status.get("completionTime") else self.now
        return max((end - parse_timestamp(start)).total_seconds(), 0.0) if start else 0.0

    def ranked(self) -> list[ShownTrial]:
        """Best first; behind those that succeeded what runs, then what was pruned, and what has failed."""
        sign = -1 if self.objective.direction is Direction.MAXIMIZE else 1
        order = (TrialState.SUCCEEDED, TrialState.RUNNING, TrialState.PRUNED, TrialState.FAILED)

        def rank(each: ShownTrial) -> tuple[float, float, int]:
            value = sign * number_of(each.trial.value) if each.trial.value is not None else float("inf")
            return order.index(each.trial.state), value, each.trial.number

        return sorted(self.trials, key=rank)


def trials_of(name: str, namespace: str) -> Selection:
    """The TrainJobs of a sweep."""
    return Selection(namespace, label_selector=f"{SWEEP_LABEL}={name}")


def word_of(obj: Object) -> str:
    """The state of an OptimizationJob in one word; `Submitted` before a controller has handled it."""
    return state_of(obj) or UNTOUCHED


def _records(obj: Object) -> Iterator[EndedTrial]:
    for record in objects_in(mapping_at(obj, "status").get("trials")):
        yield EndedTrial.from_object(record)
