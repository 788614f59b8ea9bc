"""Finds the container that failed first in the statuses of pods and Jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter

from trainer.kube.objects import Object, find_condition, is_being_deleted, is_condition_true, name_of
from trainer.workloads.containers import container_statuses

_UNKNOWN_TIME = "unknown"
"""Sorts after all timestamps."""
_MESSAGE_LIMIT = 300
"""Limit of the characters of a container runtime's message about an end."""
_LINE_LIMIT = 1024
"""Limit of the characters of a program's termination message, such as an initializer's, whose remedy comes last."""
_NAMED = re.compile(r"\bpod ([a-z0-9][a-z0-9.-]{0,252})(?:: container ([a-z0-9-]{1,63}) exited| failed)")


@dataclass(frozen=True, slots=True)
class FailedContainer:
    """A container that failed, or a pod that failed as a whole."""

    text: str
    """The failure, such as `pod x: container trainer exited with code 3`."""
    pod: str
    """Name of the pod."""
    container: str = ""
    """Name of the container; empty if the pod failed as a whole, such as when it was evicted."""


def first_failure(pods: Iterable[Object]) -> FailedContainer | None:
    """The container that failed first; None when no failed pod is left."""
    # By age: when one node dies, the others soon fail as well, or are ended.
    failures = [(is_being_deleted(pod), time, failed.text, failed) for pod in pods for time, failed in _failures(pod)]
    return min(failures, key=itemgetter(0, 1, 2))[3] if failures else None


def named_in(message: str) -> FailedContainer | None:
    """The failed container or pod that a message names in the words of `FailedContainer.text`."""
    facts, *_ = message.splitlines() or [""]
    found = _NAMED.search(facts)
    return FailedContainer(found[0], found[1], found[2] or "") if found else None


def last_crash(pod: Object) -> str:
    """How a container that is started again has ended the last time; empty when none has."""
    for status in container_statuses(pod):
        state, last = status.get("state") or {}, status.get("lastState") or {}
        end = state.get("terminated") or last.get("terminated")
        if end and end.get("exitCode"):
            return f"pod {name_of(pod)}: {_exit(status['name'], end)}"
    return ""


def failed_jobs(jobs: Iterable[Object]) -> list[str]:
    """Why Jobs failed, the first one first, for the case that all failed pods are gone."""
    failed = []
    for job in jobs:
        condition = find_condition(job, "Failed")
        if condition is not None and is_condition_true(job, "Failed"):
            said = ": ".join(part for part in (condition.get("reason"), condition.get("message")) if part)
            indexes = (job.get("status") or {}).get("failedIndexes")
            text = f"job {name_of(job)} failed{': ' if said else ''}{said}"
            text += f" (indexes {indexes})" if indexes else ""
            failed.append((condition.get("lastTransitionTime") or _UNKNOWN_TIME, text))
    return [text for _, text in sorted(failed)]


def _failures(pod: Object) -> Iterator[tuple[str, FailedContainer]]:
    status = pod.get("status") or {}
    if status.get("phase") != "Failed":
        return
    name = name_of(pod)
    ended = [(each["name"], (each.get("state") or {}).get("terminated") or {}) for each in container_statuses(pod)]
    failed = [(container, end) for container, end in ended if end.get("exitCode")]
    for container, end in failed:
        text = f"pod {name}: {_exit(container, end)}"
        yield end.get("finishedAt") or "", FailedContainer(text, name, container)
    if not failed:
        details = ": ".join(text for text in (status.get("reason"), status.get("message")) if text)
        text = f"pod {name} failed{': ' + details if details else ''}"
        yield _UNKNOWN_TIME, FailedContainer(text, name)


def _exit(container: str, end: Object) -> str:
    text = f"container {container} exited with code {end['exitCode']}"
    reason, message = end.get("reason") or "", (end.get("message") or "").strip()
    if reason in {"", "Error"}:
        # The program has ended by itself: several lines are the end of its log, which stands below.
        said = message if len(message.splitlines()) == 1 else ""
        return f"{text}: {_plain(said, _LINE_LIMIT)}" if said else text
    return f"{text} ({reason}{': ' if message else ''}{_plain(message, _MESSAGE_LIMIT)})"


def _plain(message: str, limit: int) -> str:
    line = " ".join(message.split())[:limit]
    return "".join(char for char in line if char.isprintable())
