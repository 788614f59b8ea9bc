"""The status of an OptimizationJob, made of its trials."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from trainer.api.metadata import Condition
from trainer.api.optimization import in_words
from trainer.kube.clock import timestamp
from trainer.kube.objects import Object, find_condition, is_condition_true, mapping_at, metadata_of, set_condition
from trainer_sweeps.api.optimizationjob import (
    ConditionReason,
    ConditionType,
    OptimizationJobStatus,
    ParameterAssignment,
    Result,
    State,
    TrialCounts,
    TrialState,
)
from trainer_sweeps.controllers.sweep import Sweep
from trainer_sweeps.trials.trial import best

_LONGEST_MESSAGE: Final = 4096
"""Characters of the message of a condition; an answer of an API server may have more."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the next trial is not created."""

    reason: ConditionReason
    message: str


def next_status(sweep: Sweep, now: datetime, problem: Problem | None = None) -> OptimizationJobStatus:
    """The status after what is known of the trials.

    Args:
        sweep: with the status before.
        now: for the times of changes.
        problem: why a trial was not created in this round. Default: none, or none was to be created.
    """
    before, moment = sweep.status, timestamp(now)
    if sweep.is_complete:
        return before
    conditions = _conditions(sweep, moment, problem)
    state = _state(sweep, conditions)
    names = [each.name for each in sweep.spec.parameters]
    trials = [trial.record(names) for trial in sweep.ended.values()]
    return OptimizationJobStatus(
        state=state,
        conditions=[Condition.from_object(each) for each in conditions] or None,
        progress_percentage=min(100 * len(trials) // sweep.total, 100),
        trial_counts=_counts(sweep),
        trials=trials or None,
        result=_result(sweep, names) or before.result,
        start_time=before.start_time or _start(sweep),
        completion_time=before.completion_time or (moment if state in _ENDS.values() else None),
    )


def refused_status(obj: Object, message: str, now: datetime) -> OptimizationJobStatus:
    """The status of an OptimizationJob that makes no sweep; what is known of its trials stays."""
    before = mapping_at(obj, "status")
    condition = _condition(obj, ConditionType.CREATED, ConditionReason.ALGORITHM_CREATION_FAILED, message, holds=False)
    conditions = set_condition(before.get("conditions") or (), condition, timestamp(now))
    state = next((state for type_, state in _ENDS.items() if is_condition_true(obj, type_)), State.BLOCKED)
    return OptimizationJobStatus.from_object(before | {"conditions": conditions, "state": state})


def is_stored(status: OptimizationJobStatus, before: OptimizationJobStatus) -> bool:
    """Whether a status says no more than `before`, what the API server has kept.

    The definition of Kubeflow Trainer (Go) has neither the state nor most other fields: what it drops on each write is
    not written again and again.
    """
    if before.state is None and before.conditions:
        result = status.result
        kept = None if result is None else Result(train_job_name=result.train_job_name, parameters=result.parameters)
        status = OptimizationJobStatus(conditions=status.conditions, result=kept)
    return status == before


def best_in_words(sweep: Sweep) -> str:
    """The best trial so far, with its value and parameters."""
    found = best(sweep.ended.values(), sweep.objective)
    if found is None:
        return "no trial has a value"
    return f"the best {sweep.objective.metric} is {found.value}, of {found.name} ({in_words(found.assignment)})"


_ENDS: Final = {ConditionType.COMPLETE: State.COMPLETE, ConditionType.FAILED: State.FAILED}


def _conditions(sweep: Sweep, now: str, problem: Problem | None) -> list[Object]:
    obj = sweep.stored
    conditions: list[Object] = mapping_at(obj, "status").get("conditions") or []
    for condition in _changes(sweep, problem):
        conditions = set_condition(conditions, condition, now)
    return conditions


def _changes(sweep: Sweep, problem: Problem | None) -> Iterable[Object]:
    """The conditions that this round has something to say about; those that it repeats stay as they are."""
    obj = sweep.stored
    if sweep.is_finished:
        return
    created, suspended = (find_condition(obj, each) for each in (ConditionType.CREATED, ConditionType.SUSPENDED))
    if problem is not None:
        yield _condition(obj, ConditionType.CREATED, problem.reason, problem.message, holds=False)
    elif _creates(sweep, created):
        message = "Trials are chosen and created"
        yield _condition(obj, ConditionType.CREATED, ConditionReason.TRAIN_JOBS_CREATED, message)
    if sweep.spec.suspend and not (suspended and suspended["status"] == "True"):
        message = "The OptimizationJob is suspended, and its trials with it"
        yield _condition(obj, ConditionType.SUSPENDED, ConditionReason.SUSPENDED, message)
    elif suspended and suspended["status"] == "True" and not sweep.spec.suspend:
        message = "The OptimizationJob goes on, and its trials with it"
        yield _condition(obj, ConditionType.SUSPENDED, ConditionReason.RESUMED, message, holds=False)
    if (outcome := sweep.outcome) is not None:
        yield _condition(obj, *outcome, _end_in_words(sweep, outcome[1]))


def _creates(sweep: Sweep, created: Object | None) -> bool:
    """Whether it is new that trials are created; what has kept one from that is over when none is missing."""
    if created is None:
        return bool(sweep.running or sweep.ended)
    return created["status"] != "True" and not sweep.spec.suspend and not sweep.missing


def _end_in_words(sweep: Sweep, reason: ConditionReason) -> str:
    if reason is ConditionReason.MAX_TRIALS_REACHED:
        return f"All {sweep.total} trials have ended; {best_in_words(sweep)}"
    failed = [trial for trial in sweep.ended.values() if trial.state is TrialState.FAILED]
    last = f"; trial {failed[-1].number}: {failed[-1].message}" if failed else ""
    if reason is ConditionReason.MAX_FAILED_TRIALS_REACHED:
        return f"{len(failed)} trials have failed, and spec.maxFailedTrials is {sweep.spec.max_failed_trials}{last}"
    return f"All {sweep.total} trials have ended, and none has a value of {sweep.objective.metric}{last}"


def _condition(
    obj: Object, type_: ConditionType, reason: ConditionReason, message: str, *, holds: bool = True
) -> Object:
    return {
        "type": type_.value,
        "status": "True" if holds else "False",
        "reason": reason.value,
        "message": message[:_LONGEST_MESSAGE],
        "observedGeneration": metadata_of(obj).get("generation") or 0,
    }


def _state(sweep: Sweep, conditions: list[Object]) -> State:
    with_conditions = {"status": {"conditions": conditions}}
    for type_, state in _ENDS.items():
        if is_condition_true(with_conditions, type_):
            return state
    if sweep.spec.suspend:
        return State.SUSPENDED
    created = find_condition(with_conditions, ConditionType.CREATED)
    return State.BLOCKED if created is not None and created["status"] == "False" else State.RUNNING


def _counts(sweep: Sweep) -> TrialCounts:
    states = [trial.state for trial in sweep.ended.values()]
    return TrialCounts(
        running=len(sweep.running),
        succeeded=states.count(TrialState.SUCCEEDED),
        failed=states.count(TrialState.FAILED),
        pruned=states.count(TrialState.PRUNED),
    )


def _result(sweep: Sweep, names: list[str]) -> Result | None:
    found = best(sweep.ended.values(), sweep.objective)
    if found is None:
        return None
    values = [
        ParameterAssignment(name=name, value=value)
        for name in names
        if (value := found.assignment.get(name))  # whoever may change the TrainJob may have removed the annotation
    ]
    return Result(train_job_name=found.name, value=found.value, parameters=values or None)


def _start(sweep: Sweep) -> str | None:
    starts = [trial.started for trial in (*sweep.running.values(), *sweep.ended.values()) if trial.started is not None]
    return timestamp(min(starts)) if starts else None
