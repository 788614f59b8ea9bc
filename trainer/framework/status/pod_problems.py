"""Pod problems in conditions: one line each, which stays the same while its headline does.

The message of the condition is the only memory of what has been reported, since the cluster is the only state. So the
pods of a large job that get into trouble one after another cause few writes, and one event for each reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trainer.api.metadata import Condition
    from trainer.framework.plugin_api.extension_points import PodProblem

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
    """One line for each problem, the same as before where it was reported already.

    Args:
        present: the problems that there are now.
        reported: the lines of the condition from the last time; empty if it was not true.
    """
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
