"""How impediments are told: one line each, which stays as it is while its headline does.

The message of the condition is all that remembers what has been told, since the cluster is the only state. So the pods
of a large job that come into trouble one after another cause few writes, and one event for each reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trainer.api.metadata import Condition
    from trainer.framework.plugin_api.extension_points import Impediment

_DETAILS_LIMIT = 500
"""Characters; schedulers have something to say about each node."""


def told_by(condition: Condition | None) -> list[str]:
    """The lines that a condition tells or has told, each with its reason; none where there is no such condition."""
    lines = condition.message.splitlines() if condition is not None else []
    if condition is None or condition.status != "True" or not lines:
        return lines
    beginning = f"{condition.reason}: "
    return [f"{beginning}{lines[0].removeprefix(beginning)}", *lines[1:]]


def message_of(lines: Sequence[str], reason: str) -> str:
    """The message of a condition with these lines; its own reason, which is that of the first, is not repeated."""
    return "\n".join(lines).removeprefix(f"{reason}: ")


def lines_of(present: Sequence[Impediment], told: Sequence[str]) -> list[str]:
    """One line for each impediment, the same as before where that tells of it already.

    Args:
        present: what there is now.
        told: the lines of the condition from the last time; empty if it was not true.
    """
    return [_line(impediment, told) for impediment in present]


def news_of(present: Iterable[Impediment], told: Sequence[str]) -> list[tuple[str, str]]:
    """Reason and message of the events that are due; arguments as for `lines_of`.

    A reason for which pods wait is told once, however many pods there come to be; each restart is told.
    """
    return [
        (impediment.reason, _line(impediment, told).removeprefix(f"{impediment.reason}: "))
        for impediment in present
        if not _is_told(impediment, told)
    ]


def _is_told(impediment: Impediment, before: Sequence[str]) -> bool:
    if impediment.type is ConditionType.PENDING:
        return any(line.startswith(f"{impediment.reason}: ") for line in before)
    return _same(impediment, before) is not None


def _line(impediment: Impediment, before: Sequence[str]) -> str:
    same = _same(impediment, before)
    if same is not None:
        return same
    details = " ".join(impediment.details().split())[:_DETAILS_LIMIT]
    beginning = _beginning(impediment)
    return f"{beginning}: {details}" if details else beginning


def _same(impediment: Impediment, before: Sequence[str]) -> str | None:
    beginning = _beginning(impediment)
    return next((line for line in before if line == beginning or line.startswith(f"{beginning}: ")), None)


def _beginning(impediment: Impediment) -> str:
    return f"{impediment.reason}: {impediment.headline}"
