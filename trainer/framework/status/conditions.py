"""Conditions that remember since when they hold, and pod problems in their messages.

The message of a condition is the only memory of which problems have been reported, since the cluster is the only state.
It has one line for each problem, which stays the same while the headline does: the pods of a large job that get into
trouble one after another cause few writes, and one event for each reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from trainer.api.metadata import Condition
from trainer.api.trainjob_status import ConditionType, TrainJobStatus
from trainer.framework.plugin_api.reports import PodProblem

MESSAGE_LIMIT = 32768
"""Characters of a condition's message (Kubernetes `metav1.Condition`)."""

_STATUSES: dict[bool | None, Literal["True", "False", "Unknown"]] = {True: "True", False: "False", None: "Unknown"}


class Conditions:
    """A list of conditions, one of each type; setting one keeps its transition time unless its status changes."""

    def __init__(self, conditions: Iterable[Condition], now: str, generation: int | None = None) -> None:
        self._by_type = {condition.type: condition for condition in conditions}
        self._now = now
        self._generation = generation

    @classmethod
    def of(cls, status: TrainJobStatus | None) -> Conditions:
        """Those of a status, to be read."""
        return cls((status and status.conditions) or [], "")

    def get(self, condition_type: str) -> Condition | None:
        """The condition of this type."""
        return self._by_type.get(condition_type)

    def is_true(self, condition_type: str) -> bool:
        """Whether the condition is there and holds."""
        condition = self._by_type.get(condition_type)
        return condition is not None and condition.status == "True"

    def is_false(self, condition_type: str) -> bool:
        """Whether the condition is there and does not hold."""
        condition = self._by_type.get(condition_type)
        return condition is not None and condition.status == "False"

    def set(self, condition_type: str, *, holds: bool | None, reason: str, message: str) -> None:
        """Add the condition or change it in its place; `holds` is None when that is not known."""
        status = _STATUSES[holds]
        previous = self._by_type.get(condition_type)
        since = previous.last_transition_time if previous and previous.status == status else self._now
        self._by_type[condition_type] = Condition(
            type=condition_type,
            status=status,
            reason=reason,
            message=message[:MESSAGE_LIMIT],
            last_transition_time=since,
            observed_generation=self._generation,
        )

    def to_list(self) -> list[Condition]:
        """The conditions in the order in which they were first set."""
        return list(self._by_type.values())


_DETAILS_LIMIT = 500
"""Characters; schedulers have something to say about each node."""


def reported_lines(condition: Condition | None) -> list[str]:
    """The lines that a condition reports or has reported, each with its reason."""
    lines = condition.message.splitlines() if condition is not None else []
    if condition is None or condition.status != "True" or not lines:
        return lines
    beginning = f"{condition.reason}: "
    return [f"{beginning}{lines[0].removeprefix(beginning)}", *lines[1:]]


def message_of(lines: Sequence[str], reason: str) -> str:
    """The message of a condition with these lines; its own reason, which is that of the first, is not repeated."""
    return "\n".join(lines).removeprefix(f"{reason}: ")


def problem_lines(present: Sequence[PodProblem], reported: Sequence[str]) -> list[str]:
    """One line for each problem, the same as before where it was reported already."""
    return [_line(problem, reported) for problem in present]


def due_events(present: Iterable[PodProblem], reported: Sequence[str]) -> list[tuple[str, str]]:
    """Reason and message of the events that are due; arguments as for `problem_lines`.

    A reason for which pods wait is reported once, for however many pods; each restart is reported.
    """
    return [
        (problem.reason, _line(problem, reported).removeprefix(f"{problem.reason}: "))
        for problem in present
        if not _is_reported(problem, reported)
    ]


def _is_reported(problem: PodProblem, reported: Sequence[str]) -> bool:
    if problem.type is ConditionType.PENDING:
        return any(line.startswith(f"{problem.reason}: ") for line in reported)
    return _same(problem, reported) is not None


def _line(problem: PodProblem, reported: Sequence[str]) -> str:
    same = _same(problem, reported)
    if same is not None:
        return same
    details = " ".join(problem.details().split())[:_DETAILS_LIMIT]
    beginning = _beginning(problem)
    return f"{beginning}: {details}" if details else beginning


def _same(problem: PodProblem, reported: Sequence[str]) -> str | None:
    beginning = _beginning(problem)
    return next((line for line in reported if line == beginning or line.startswith(f"{beginning}: ")), None)


def _beginning(problem: PodProblem) -> str:
    return f"{problem.reason}: {problem.headline}"
