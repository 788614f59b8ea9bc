"""The events that report changes of the status of a TrainJob."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trainer.api.event_reasons import EventReason
from trainer.api.metadata import Condition
from trainer.api.trainjob_status import ConditionReason, ConditionType, State, TrainJobStatus
from trainer.framework.status.status import CORE_CONDITIONS, Observation, due_events, reported_lines
from trainer.kube.events.recorder import EventKind

_LOG_LIMIT = 700
"""Bytes; an event may have 1024, with names in it, and is cut at the end, where a log says most."""

_OVER = {
    ConditionType.PENDING: "No pod is waiting any longer",
    ConditionType.RESTARTING: "Pods are ready again",
}
_PROBLEMS = frozenset({*_OVER, ConditionType.STOPPING})


class StatusEvent(NamedTuple):
    """An event to record."""

    type: EventKind
    reason: str
    message: str


def changed_conditions(before: TrainJobStatus | None, after: TrainJobStatus) -> list[Condition]:
    """Conditions that are new or have a new status, reason or message."""
    old = {_event_key(condition) for condition in (before and before.conditions) or []}
    return [condition for condition in after.conditions or [] if _event_key(condition) not in old]


def status_events(before: TrainJobStatus | None, after: TrainJobStatus, seen: Observation) -> Iterator[StatusEvent]:
    """The events that report a change of the status."""
    old = {condition.type: condition for condition in (before and before.conditions) or []}
    for condition in changed_conditions(before, after):
        yield from _about(old.get(condition.type), condition, after, seen)
    if seen.log and after.state is State.FAILED:
        culprit = seen.outcome and seen.outcome.culprit
        where = [f"pod {culprit.pod}, container {culprit.container}:"] if culprit else []
        yield StatusEvent("Warning", EventReason.LAST_LOG_LINES, "\n".join([*where, *_tail(seen.log)]))


def _about(old: Condition | None, new: Condition, after: TrainJobStatus, seen: Observation) -> Iterator[StatusEvent]:
    if new.type in _PROBLEMS:
        yield from _about_pod_problem(old, new, after, seen)
    elif new.type == ConditionType.COMPLETE or _is_first_creation(old, new, seen):
        return  # as everybody expects: conditions and the events of JobSet and Jobs say it without another request
    elif new.type in CORE_CONDITIONS:
        # Only the first line: the log has an event of its own.
        facts, *_ = new.message.splitlines() or [""]
        if _is_partly_applied(new, seen):
            yield StatusEvent("Warning", EventReason.CHANGES_NOT_APPLIED, facts)
        else:
            yield StatusEvent("Warning" if _is_bad(new) else "Normal", new.reason, facts)
    elif old is None or (old.status, old.reason) != (new.status, new.reason):
        yield StatusEvent("Normal", new.reason, new.message or f"{new.type} is {new.status}")


def _about_pod_problem(
    old: Condition | None, new: Condition, after: TrainJobStatus, seen: Observation
) -> Iterator[StatusEvent]:
    condition_type = ConditionType(new.type)
    was_true = old is not None and old.status == "True"
    if new.status == "True":
        present = [problem for problem in seen.pod_problems if problem.type is condition_type]
        for reason, message in due_events(present, reported_lines(old) if was_true else []):
            if reason != ConditionReason.SUSPENDING_PODS:  # somebody wants that
                yield StatusEvent("Warning", reason, message)
    elif condition_type is ConditionType.STOPPING:
        return  # what follows has events of its own
    elif was_true and after.state not in {State.SUSPENDED, State.COMPLETE, State.FAILED}:
        yield StatusEvent("Normal", new.reason, _OVER[condition_type])


def _event_key(condition: Condition) -> tuple[str, str, str, str]:
    return condition.type, condition.status, condition.reason, condition.message


def _is_bad(condition: Condition) -> bool:
    if condition.type == ConditionType.FAILED:
        return condition.status == "True"
    return condition.type == ConditionType.CREATED and condition.status == "False"


def _is_first_creation(old: Condition | None, new: Condition, seen: Observation) -> bool:
    """Whether the Jobs exist, and nothing has kept them from being created."""
    is_created = new.type == ConditionType.CREATED and new.status == "True"
    return is_created and old is None and not _is_partly_applied(new, seen)


def _is_partly_applied(condition: Condition, seen: Observation) -> bool:
    is_created = condition.type == ConditionType.CREATED and condition.status == "True"
    return is_created and seen.ensured is not None and not seen.ensured.is_whole


def _tail(log: Sequence[str]) -> list[str]:
    """The last whole lines that fit into an event, at least one."""
    kept: list[str] = []
    for line in reversed(log):
        if kept and len("\n".join([line, *kept]).encode()) > _LOG_LIMIT:
            break
        kept.insert(0, line)
    return kept
