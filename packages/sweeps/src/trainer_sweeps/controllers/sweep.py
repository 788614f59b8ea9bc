"""A sweep: one OptimizationJob with its trials, as they are at one moment, and what is to be done about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.optimization import HELD, trial_number
from trainer.kube.clock import parse_timestamp
from trainer.kube.field_errors import first_errors
from trainer.kube.objects import (
    Object,
    annotations_of,
    find_condition,
    is_being_deleted,
    is_condition_true,
    is_controlled_by,
    mapping_at,
    name_of,
    uid_of,
)
from trainer_sweeps.api.optimizationjob import (
    ConditionReason,
    ConditionType,
    Objective,
    OptimizationJob,
    OptimizationJobSpec,
    OptimizationJobStatus,
    TrialState,
)
from trainer_sweeps.search.suggestion import number_of_trials, seed_of
from trainer_sweeps.trials.train_job import is_queued
from trainer_sweeps.trials.trial import Trial


@dataclass(frozen=True, slots=True)
class Sweep:
    """One OptimizationJob, and its trials by number."""

    stored: Object
    """The OptimizationJob as the API server has it."""
    spec: OptimizationJobSpec
    status: OptimizationJobStatus
    """What is stored."""
    total: int
    """How many trials there are in all, as a grid has no more than its combinations."""
    ended: Mapping[int, Trial]
    """The trials that have ended: those that the status has, and those whose end it is to get."""
    running: Mapping[int, Trial]
    """The others, also those that are being deleted or suspended."""
    train_jobs: Mapping[int, Object]
    """The TrainJobs that exist."""

    @classmethod
    def of(cls, obj: Object, train_jobs: Iterable[Object], now: datetime, began: datetime | None = None) -> Self:
        """Read an OptimizationJob; of the TrainJobs those that it controls, by their numbers, are its trials.

        `began` is that of `Trial.of`.

        Raises:
            InvalidObjectError: it has fields that no sweep can be made of.
        """
        model = _read(obj)
        spec, status = model.spec, model.status or OptimizationJobStatus()
        objective, names = spec.objectives[0], [each.name for each in spec.parameters]
        total = number_of_trials(spec)
        own: dict[int, Object] = {}
        for train_job in train_jobs:
            number = trial_number(name_of(train_job), name_of(obj))
            if number is not None and number <= total and is_controlled_by(train_job, obj):
                own[number] = train_job
        seen = {number: replace(Trial.of(each, objective, now, began), number=number) for number, each in own.items()}
        ended = {
            record.number: _with_curve(Trial.of_record(name_of(obj), record, names, objective), seen.get(record.number))
            for record in status.trials or []
        }
        ended |= {number: trial for number, trial in seen.items() if trial.has_ended and number not in ended}
        return cls(
            stored=obj,
            spec=spec,
            status=status,
            total=total,
            ended=dict(sorted(ended.items())),
            running={number: trial for number, trial in sorted(seen.items()) if number not in ended},
            train_jobs=own,
        )

    @property
    def objective(self) -> Objective:
        """What is optimized."""
        return self.spec.objectives[0]

    @property
    def seed(self) -> int:
        """The seed of its algorithm."""
        return seed_of(self.spec, uid_of(self.stored))

    @property
    def is_complete(self) -> bool:
        """Whether the status says that all trials have ended."""
        return is_condition_true(self.stored, ConditionType.COMPLETE)

    @property
    def has_failed(self) -> bool:
        """Whether the status says that the sweep has failed."""
        return is_condition_true(self.stored, ConditionType.FAILED)

    @property
    def is_finished(self) -> bool:
        """Whether the status says that the sweep has ended."""
        return self.is_complete or self.has_failed

    @property
    def outcome(self) -> tuple[ConditionType, ConditionReason] | None:
        """How it ends by its trials; None while it goes on."""
        failed = sum(trial.state is TrialState.FAILED for trial in self.ended.values())
        if self.spec.max_failed_trials is not None and failed > self.spec.max_failed_trials:
            return ConditionType.FAILED, ConditionReason.MAX_FAILED_TRIALS_REACHED
        if len(self.ended) < self.total:
            return None
        if any(trial.state is TrialState.SUCCEEDED for trial in self.ended.values()):
            return ConditionType.COMPLETE, ConditionReason.MAX_TRIALS_REACHED
        return ConditionType.FAILED, ConditionReason.NO_TRIAL_SUCCEEDED

    @property
    def news(self) -> list[Trial]:
        """The trials that have ended and are not in the status."""
        known = {record.number for record in self.status.trials or []}
        return [trial for number, trial in self.ended.items() if number not in known]

    @property
    def has_news(self) -> bool:
        """Whether the status is to be written before anything follows from it."""
        return bool(self.news) or (self.outcome is not None and not self.is_finished)

    @property
    def missing(self) -> list[int]:
        """Numbers of the trials to begin, at most as many as may run besides those that do."""
        if self.spec.suspend or self.is_finished:
            return []
        free = self.spec.parallel_trials - len(self.running)
        numbers = (each for each in range(1, self.total + 1) if each not in self.ended and each not in self.running)
        return [number for number, _ in zip(numbers, range(free), strict=False)]

    @property
    def to_prune(self) -> list[Trial]:
        """The trials that a sweep which has failed stops."""
        return [trial for trial in self.going.values() if self.has_failed]

    @property
    def to_hold(self) -> list[Trial]:
        """The trials to suspend with the sweep: those that run, and those that wait in a queue that would start them.

        One that its user has suspended is suspended with the sweep once the user resumes it.
        """
        if not self.spec.suspend or self.is_finished:
            return []
        return [trial for number, trial in self.going.items() if not _rests(self.train_jobs[number])]

    @property
    def to_release(self) -> list[Trial]:
        """The trials that were suspended with the sweep and go on with it."""
        if self.spec.suspend or self.is_finished:
            return []
        return [trial for number, trial in self.going.items() if HELD in annotations_of(self.train_jobs[number])]

    @property
    def going(self) -> dict[int, Trial]:
        """The trials that run and may be changed."""
        return {
            number: trial
            for number, trial in self.running.items()
            if trial.ended is None and not is_being_deleted(self.train_jobs[number])
        }

    def with_running(self, trial: Trial, train_job: Object) -> Self:
        """The sweep with another trial, which was created."""
        running = dict(sorted({**self.running, trial.number: trial}.items()))
        return replace(self, running=running, train_jobs={**self.train_jobs, trial.number: train_job})

    def with_stored(self, obj: Object) -> Self:
        """The sweep with the status that the API server has now."""
        return replace(self, stored=obj, status=OptimizationJobStatus.from_object(mapping_at(obj, "status")))

    def seconds_left(self, now: datetime) -> float | None:
        """Seconds until it is looked at again though nothing changes; None: never."""
        judged = [trial.judged for trial in self.running.values() if trial.judged is not None]
        left = [max((each - now).total_seconds(), 0.0) for each in judged]
        to_live = self.seconds_to_live(now)
        return min(left + ([] if to_live is None else [to_live]), default=None)

    def seconds_to_live(self, now: datetime) -> float | None:
        """Seconds until it is deleted, 0 or less when it is due; None: it stays."""
        seconds = self.spec.ttl_seconds_after_finished
        since = self.status.completion_time
        if since is None:  # the definition of Kubeflow Trainer (Go) does not have the field
            condition = find_condition(
                self.stored, ConditionType.COMPLETE if self.is_complete else ConditionType.FAILED
            )
            since = (condition or {}).get("lastTransitionTime")
        if not self.is_finished or seconds is None or since is None:
            return None
        return seconds - (now - parse_timestamp(since)).total_seconds()


def _read(obj: Object) -> OptimizationJob:
    """Read it as tolerantly as it is stored, but for what admission refuses and no sweep can be made of."""
    model = OptimizationJob.from_object(obj)
    if errors := first_errors(model.semantic_errors()):
        raise InvalidObjectError(f"OptimizationJob {model.metadata.name}", errors)
    return model


def _with_curve(recorded: Trial, seen: Trial | None) -> Trial:
    """What was recorded counts; the TrainJob has the whole curve, for the comparison with others."""
    return recorded if seen is None else replace(recorded, curve=seen.curve, started=seen.started, ended=seen.ended)


def _rests(train_job: Object) -> bool:
    """Whether a trial is suspended, and nothing but its user or the sweep resumes it."""
    is_suspended = mapping_at(train_job, "spec").get("suspend") is True
    return is_suspended and (HELD in annotations_of(train_job) or not is_queued(train_job))
