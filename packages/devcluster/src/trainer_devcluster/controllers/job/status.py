"""The status of a Job, derived from its pods and accounts, and the events that tell of its changes."""

from __future__ import annotations

from copy import deepcopy

from trainer.kube.clock import timestamp
from trainer.kube.objects import Object, find_condition, is_condition_true
from trainer_devcluster.controllers.job.accounts import Accounts
from trainer_devcluster.controllers.job.pods import format_indexes, is_ready, is_terminating
from trainer_devcluster.controllers.job.spec import JobObservation
from trainer_devcluster.controllers.job.verdict import TERMINAL_CONDITION, JobEnd
from trainer_devcluster.controllers.options import ReconcileEvent

_SUSPENDED: Object = {"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended"}
_TOO_MANY = ReconcileEvent(
    "Warning", "TooManySucceededPods", "Too many succeeded pods running after completion count reached"
)
_RESUMED: Object = {"type": "Suspended", "status": "False", "reason": "JobResumed", "message": "Job resumed"}


def build_status(state: JobObservation, accounts: Accounts, verdict: JobEnd | None) -> Object:
    """The status that the Job should have; equal to the stored one when nothing has changed."""
    status: Object = deepcopy(state.status)
    _set_or_drop(status, "active", len(state.active))
    _set_or_drop(status, "succeeded", accounts.succeeded)
    _set_or_drop(status, "failed", accounts.failed)
    _set_or_drop(status, "completedIndexes", format_indexes(accounts.completed_indexes))
    status["terminating"] = sum(is_terminating(pod) for pod in state.pods)
    status["ready"] = sum(is_ready(pod) for pod in state.active)
    noted = {"succeeded": list(accounts.uncounted_succeeded), "failed": list(accounts.uncounted_failed)}
    status["uncountedTerminatedPods"] = {kind: uids for kind, uids in noted.items() if uids}
    if verdict is None:
        _set_suspension(state, status)
    else:
        _set_outcome(state, accounts, verdict, status)
    return status


def status_events(job: Object, new: Object) -> tuple[ReconcileEvent, ...]:
    """The events for a new status of the Job: suspended, resumed, completed, failed."""
    events: list[ReconcileEvent] = []
    for condition in new.get("conditions") or []:
        before = find_condition(job, condition["type"])
        if before is None or before["status"] != condition["status"]:
            events += _status_events(job, new, condition)
    return tuple(events)


def _status_events(job: Object, status: Object, condition: Object) -> list[ReconcileEvent]:
    match condition["type"], condition["status"]:
        case "Suspended", "True":
            return [ReconcileEvent("Normal", "Suspended", condition["message"])]
        case "Suspended", "False":
            return [ReconcileEvent("Normal", "Resumed", condition["message"])]
        case "Complete", "True":
            completions, succeeded = job["spec"].get("completions"), status.get("succeeded") or 0
            too_many = completions is not None and succeeded > completions
            return [*([_TOO_MANY] if too_many else ()), ReconcileEvent("Normal", "Completed", "Job completed")]
        case "Failed", "True":
            return [ReconcileEvent("Warning", condition["reason"], condition["message"])]
        case _:
            return []


def _set_suspension(state: JobObservation, status: Object) -> None:
    now = timestamp(state.now)
    if state.spec.suspended:
        # Cleared so that the pod template may be changed while suspended (KEP-5440).
        status.pop("startTime", None)
        _put_condition(status, _SUSPENDED, now)
        return
    if is_condition_true(state.job, "Suspended"):
        status["startTime"] = now
        _put_condition(status, _RESUMED, now)
    status.setdefault("startTime", now)


def _set_outcome(state: JobObservation, accounts: Accounts, verdict: JobEnd, status: Object) -> None:
    now = timestamp(state.now)
    if not state.spec.suspended:
        status.setdefault("startTime", now)
    _put_condition(status, _condition(verdict.condition, verdict), now)
    pending = state.active or state.tracked or status["terminating"] or not accounts.settled
    # The terminal condition is a write of its own: the interim one is stored, and all pods are accounted for.
    if pending or not is_condition_true(state.job, verdict.condition):
        return
    terminal = TERMINAL_CONDITION[verdict.condition]
    _put_condition(status, _condition(terminal, verdict), now)
    if terminal == "Complete":
        status["completionTime"] = now


def _condition(kind: str, verdict: JobEnd) -> Object:
    return {"type": kind, "status": "True", "reason": verdict.reason, "message": verdict.message}


def _put_condition(status: Object, condition: Object, now: str) -> None:
    present = find_condition({"status": status}, condition["type"])
    if present is None:
        present = {}
        status.setdefault("conditions", []).append(present)
    elif present["status"] == condition["status"]:
        return
    present |= {**condition, "lastProbeTime": now, "lastTransitionTime": now}


def _set_or_drop(status: Object, field: str, value: int | str) -> None:
    if value:
        status[field] = value
    else:
        status.pop(field, None)
