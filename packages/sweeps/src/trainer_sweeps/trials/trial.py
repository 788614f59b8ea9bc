"""A trial: what one TrainJob of a sweep has reached."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from trainer.api.metric_curve import MetricCurve, Point, number_of
from trainer.api.optimization import LONGEST_TEXT, METRICS, PRUNED, assignment_of, trial_name, trial_number, value_of
from trainer.api.trainjob_status import ConditionType
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import (
    Object,
    annotations_of,
    controller_of,
    find_condition,
    is_condition_true,
    mapping_at,
    metadata_of,
    name_of,
    uid_of,
)
from trainer_sweeps.api.optimizationjob import (
    LONGEST_MESSAGE,
    Direction,
    EndedTrial,
    Objective,
    TrialState,
)

PATIENCE: Final = timedelta(seconds=60)
"""How long after its end a trial may wait for the last points of its curve, which the manager reads from its log; if it
has ended while there was no manager, how long after the beginning of the next one."""

_MOST_NAMED: Final = 8
"""Metrics that a trial has reported in place of the one that is asked for."""
_LARGEST_STEP: Final = 2**31 - 1
"""The greatest step for which the status has room."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial at one moment."""

    number: int
    """From 1; 0 where no sweep calls a TrainJob so."""
    name: str
    """Name of its TrainJob."""
    state: TrialState
    assignment: Mapping[str, str]
    """The value of each parameter."""
    curve: MetricCurve
    """The values of the objective that it has reported; of a trial whose TrainJob is deleted, the last one alone."""
    value: str | None = None
    """The value of the objective, digit by digit; of one that runs or was pruned the last one, of one that has failed
    none."""
    step: int | None = None
    """The last step that it has reported."""
    message: str | None = None
    """Why it has failed or was pruned."""
    started: datetime | None = None
    """When its TrainJob was created."""
    ended: datetime | None = None
    """When its TrainJob ended, or was stopped as pruned; None while it runs."""
    judged: datetime | None = None
    """When it is judged by what there is, though its curve is not complete; None unless it waits for that."""

    @staticmethod
    def of(train_job: Object, objective: Objective, now: datetime, began: datetime | None = None) -> Trial:
        """The trial of a TrainJob in the shape of the model.

        A TrainJob that is complete still counts as running until its curve is, at the longest for `PATIENCE`.

        Args:
            train_job: the TrainJob.
            objective: of the sweep.
            now: the present time.
            began: when the manager began that reads its log. Default: before its end.
        """
        annotations = annotations_of(train_job)
        curve = MetricCurve.of(annotations, objective.metric, uid_of(train_job))
        sweep = str((controller_of(train_job) or {}).get("name") or "")
        trial = Trial(
            number=trial_number(name_of(train_job), sweep) or 0,
            name=name_of(train_job),
            state=TrialState.RUNNING,
            assignment=assignment_of(annotations),
            curve=curve,
            value=curve.points[-1].value if curve.points else None,
            step=min(curve.points[-1].step, _LARGEST_STEP) if curve.points else None,
            started=_moment(metadata_of(train_job).get("creationTimestamp")),
        )
        if (reason := annotations.get(PRUNED)) is not None:
            stop = _end(train_job, ConditionType.SUSPENDED) or {}
            ended = _moment(stop.get("lastTransitionTime"))
            return replace(trial, state=TrialState.PRUNED, message=_cut(reason), ended=ended)
        if (failure := _end(train_job, ConditionType.FAILED)) is not None:
            message = _cut(str(failure.get("message") or failure.get("reason") or ""))
            ended = _moment(failure.get("lastTransitionTime"))
            return replace(trial, state=TrialState.FAILED, value=None, message=message, ended=ended)
        if (completion := _end(train_job, ConditionType.COMPLETE)) is None:
            return trial
        trial = replace(trial, ended=_moment(completion.get("lastTransitionTime")))
        if not curve.is_final and trial.ended is not None:
            judged = max(trial.ended, began or trial.ended) + PATIENCE
            if now < judged:
                return replace(trial, judged=judged)
        return _judged(trial, train_job, objective)

    @staticmethod
    def of_record(sweep: str, record: EndedTrial, parameters: Sequence[str], objective: Objective) -> Trial:
        """The trial of an entry of `status.trials`.

        Args:
            sweep: name of the OptimizationJob.
            record: the entry.
            parameters: names of the parameters, in the order of the spec.
            objective: of the sweep.
        """
        last = () if record.value is None or record.step is None else (Point(record.step, record.value),)
        return Trial(
            number=record.number,
            name=trial_name(sweep, record.number),
            state=TrialState(record.state),
            assignment=dict(zip(parameters, record.parameter_values, strict=False)),
            curve=MetricCurve(objective.metric, last, is_final=True),
            value=record.value,
            step=record.step,
            message=record.message,
        )

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more, and it is known what it has reached."""
        return self.state is not TrialState.RUNNING

    def record(self, parameters: Iterable[str]) -> EndedTrial:
        """The entry of `status.trials` for a trial that has ended."""
        assert self.state is not TrialState.RUNNING
        return EndedTrial(
            number=self.number,
            state=self.state,
            value=self.value,
            step=self.step,
            parameter_values=[self.assignment.get(name, "") for name in parameters],
            message=self.message,
        )


def best(trials: Iterable[Trial], objective: Objective) -> Trial | None:
    """The trial with the best value of those that have succeeded, of equal ones the first; None if none has."""
    sign = -1 if objective.direction is Direction.MAXIMIZE else 1
    found = [trial for trial in trials if trial.state is TrialState.SUCCEEDED and trial.value is not None]
    return min(found, key=lambda trial: (sign * number_of(trial.value or ""), trial.number), default=None)


def reported_metrics(train_job: Object) -> list[str]:
    """Names of the metrics in the status, those of the evaluation first."""
    reported = mapping_at(train_job, "status", "trainerStatus")
    return list(dict.fromkeys(name for field in METRICS for name in mapping_at(reported, field)))


def _judged(trial: Trial, train_job: Object, objective: Objective) -> Trial:
    """The trial of a TrainJob that is complete, and reports no more."""
    value = value_of(train_job, trial.curve, objective.aggregate)
    if value is None:
        message = f"it is complete and has not reported the metric {objective.metric}, {_instead(train_job)}"
    elif not math.isfinite(number_of(value)):
        message = f"it is complete, and its metric {objective.metric} is {value[:LONGEST_TEXT]}"
    else:
        return replace(trial, state=TrialState.SUCCEEDED, value=value)
    return replace(trial, state=TrialState.FAILED, value=None, message=_cut(message))


def _end(train_job: Object, type_: ConditionType) -> Object | None:
    return find_condition(train_job, type_) if is_condition_true(train_job, type_) else None


def _instead(train_job: Object) -> str:
    """What has been reported in place of the metric; often one of these is meant."""
    names = reported_metrics(train_job)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"but {', '.join(names[:_MOST_NAMED])}{more}" if names else "nor any other"


def _cut(message: str) -> str:
    """The first line, which is the failure."""
    line = message.strip().partition("\n")[0]
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE - 3]}..."


def _moment(text: object) -> datetime | None:
    return parse_timestamp(text) if isinstance(text, str) else None
