"""Which pod broke a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.kube.objects import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainer.kube.objects import Object


_UNKNOWN_TIME = "unknown"
"""Sorts after all timestamps."""


@dataclass(frozen=True, slots=True, order=True)
class _Failure:
    """Ordered by time: when one node dies, the others soon fail as well."""

    finished_at: str
    text: str


def first_failure(pods: Iterable[Object]) -> list[str]:
    """The pod that failed first, with container, exit code and reason; empty when no failed pod is left."""
    failures = [failure for pod in pods for failure in _failures(pod)]
    return [min(failures).text] if failures else []


def _failures(pod: Object) -> Iterator[_Failure]:
    status = pod.get("status") or {}
    if status.get("phase") != "Failed":
        return
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    ended = [(c["name"], c["state"]["terminated"]) for c in containers if (c.get("state") or {}).get("terminated")]
    failed = [(name, end) for name, end in ended if end.get("exitCode")]
    for name, end in failed:
        reason = end.get("reason") or ""
        hint = f" ({reason})" if reason not in {"", "Error"} else ""
        yield _Failure(
            end.get("finishedAt") or "",
            f"pod {name_of(pod)}: container {name} exited with code {end['exitCode']}{hint}",
        )
    if not failed:
        details = ": ".join(text for text in (status.get("reason"), status.get("message")) if text)
        yield _Failure(_UNKNOWN_TIME, f"pod {name_of(pod)} failed{': ' + details if details else ''}")
