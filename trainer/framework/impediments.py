"""How impediments are told: one line each, which stays as it is while its headline does.

The message of the condition is all that remembers what has been told, since the cluster is the only state. So the pods
of a large job that come into trouble one after another cause few writes, and one event for each reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trainer.framework.extension_points import Impediment

_DETAILS_LIMIT = 500
"""Characters; schedulers have something to say about each node."""


def lines_of(present: Sequence[Impediment], told: str) -> list[str]:
    """One line for each impediment, the same as before where that tells of it already.

    Args:
        present: what there is now.
        told: the message of the condition, which is true, from the last time; empty if it was not.
    """
    before = told.splitlines()
    return [_line(impediment, before) for impediment in present]


def news_of(present: Iterable[Impediment], told: str) -> list[tuple[str, str]]:
    """Reason and message of the events that are due; arguments as for `lines_of`.

    A reason for which pods wait is told once, however many pods there come to be; each restart is told.
    """
    before = told.splitlines()
    return [
        (impediment.reason, _line(impediment, before).removeprefix(f"{impediment.reason}: "))
        for impediment in present
        if not _is_told(impediment, before)
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
