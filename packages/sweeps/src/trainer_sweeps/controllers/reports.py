"""Reports what a sweep does: events on the OptimizationJob, and metrics."""

from __future__ import annotations

from typing import Final

from trainer.api.optimization import in_words
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.events.recorder import EventKind, EventRecorder
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, mapping_at, objects_in, uid_of
from trainer_sweeps.api.event_reasons import EventReason
from trainer_sweeps.api.optimizationjob import ConditionType, OptimizationJobStatus, TrialState
from trainer_sweeps.controllers.metrics import SweepSeries
from trainer_sweeps.controllers.sweep import Sweep
from trainer_sweeps.controllers.train_jobs import FIELD_MANAGER
from trainer_sweeps.trials.trial import Trial

_REMEMBERED: Final = 8192
"""Trials whose end was reported, where the API server does not keep that; that of the oldest is reported again."""
_OF_TRIALS: Final = "trainer-sweeps-trials"
"""Component of the events about trials. Of one component few are kept at once, and so many trials would leave no room
for the end of their sweep."""


_REASONS: Final = {
    TrialState.SUCCEEDED: EventReason.TRIAL_SUCCEEDED,
    TrialState.FAILED: EventReason.TRIAL_FAILED,
    TrialState.PRUNED: EventReason.TRIAL_PRUNED,
}


class SweepReports:
    """Reports on all sweeps.

    Args:
        manager: takes the events.
        series: counts.
    """

    def __init__(self, manager: Manager, series: SweepSeries) -> None:
        self._recorder = EventRecorder(manager.events, _OF_TRIALS)
        self._conditions = EventRecorder(manager.events, FIELD_MANAGER)
        self._series = series
        self._reported: BoundedDict[tuple[str, int], str] = BoundedDict(_REMEMBERED)

    def created(self, sweep: Sweep, trial: Trial) -> None:
        """A trial was created."""
        self._series.trials_started.inc()
        message = f"Created trial {trial.number}: {in_words(trial.assignment)}"
        self._recorder.record(sweep.stored, type="Normal", reason=EventReason.TRIAL_CREATED, message=message)

    def ended(self, sweep: Sweep) -> None:
        """Report the trials that were not in the status before; once, also where the API server keeps none there."""
        for trial in () if sweep.is_complete else sweep.news:
            key = uid_of(sweep.stored), trial.number
            if self._reported.get(key) == trial.state:
                continue
            self._reported[key] = trial.state
            self._series.trials.labels(trial.state.value).inc()
            kind: EventKind = "Warning" if trial.state is TrialState.FAILED else "Normal"
            self._recorder.record(sweep.stored, type=kind, reason=_REASONS[trial.state], message=_end(sweep, trial))

    def changed(self, obj: Object, status: OptimizationJobStatus) -> None:
        """Report the conditions that differ from those of the stored object."""
        known = {_aspect(each) for each in objects_in(mapping_at(obj, "status").get("conditions"))}
        for condition in status.conditions or []:
            if _aspect(condition.to_object()) in known or _goes_without_saying(condition.type, condition.status, known):
                continue
            is_bad = condition.type == ConditionType.FAILED or (condition.type, condition.status) == (
                ConditionType.CREATED,
                "False",
            )
            kind: EventKind = "Warning" if is_bad else "Normal"
            self._conditions.record(obj, type=kind, reason=condition.reason, message=condition.message)


def _aspect(condition: Object) -> tuple[object, ...]:
    message = condition.get("message") if condition.get("status") == "False" else None
    return condition.get("type"), condition.get("status"), condition.get("reason"), message


def _goes_without_saying(type_: str, status: str, known: set[tuple[object, ...]]) -> bool:
    """Whether trials are created and nothing was wrong with that before: each has an event of its own."""
    is_created = (type_, status) == (ConditionType.CREATED, "True")
    return is_created and not any(each[0] == ConditionType.CREATED for each in known)


def _end(sweep: Sweep, trial: Trial) -> str:
    metric = sweep.objective.metric
    match trial.state:
        case TrialState.SUCCEEDED:
            return f"Trial {trial.number} has ended with {metric} {trial.value}: {in_words(trial.assignment)}"
        case TrialState.PRUNED:
            return f"Trial {trial.number} was stopped: {trial.message}"
        case _:
            return f"Trial {trial.number} has failed: {trial.message}"
