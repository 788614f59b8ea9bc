"""Finds the container that failed first in the statuses of pods and Jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trainer.api.jobset_pods import node_name
from trainer.framework.plugin_api.error_lines import error_line
from trainer.kube.objects import Object, find_condition, is_being_deleted, is_condition_true, name_of
from trainer.workloads.containers import container_statuses

_UNKNOWN_TIME = "unknown"
"""Sorts after all timestamps."""
_MESSAGE_LIMIT = 300
"""Limit of the characters of a container runtime's message about an end."""
_LINE_LIMIT = 1024
"""Limit of the characters of a program's termination message, such as an initializer's, whose remedy comes last."""
_HEADLINE_LIMIT = 500
"""Characters of a headline; the message of a condition, with facts and log, stays below 8 KiB."""
LOG_HEADING = "last lines of its log:"
"""The line in the message of a condition below which a log is quoted."""
_SIGNALS = {
    130: "interrupted",
    132: "illegal instruction",
    134: "aborted",
    135: "bus error",
    136: "arithmetic error",
    137: "killed",
    139: "segmentation fault",
    143: "terminated",
}
"""What the exit codes of programs that a signal has ended mean."""
_KILLED = frozenset({137, 143})
"""Exit codes of programs that somebody else has ended."""
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
    node: str = ""
    """The pod in the words of people, such as `node-1`; empty for the name of the pod."""
    end: str = ""
    """How it ended, such as `exit code 139 (segmentation fault)` or `OOMKilled (exit code 137)`. Empty: `failed`."""
    said: tuple[str, ...] = ()
    """The lines of its termination message, if the program has ended by itself."""
    is_explained_by_log: bool = True
    """Whether its log says why: not where the kubelet or the kernel has ended it. Default: True."""
    is_killed: bool = False
    """Whether it was ended by somebody else, such as because another node had failed. Default: False."""

    def headline(self, log: Sequence[str] = ()) -> str:
        """The failure in one line: the node, and the error that the program has written last, else how it ended.

        Args:
            log: the last lines of its log. Default: none.
        """
        words = ""
        if self.is_explained_by_log:
            words = self.said[0] if len(self.said) == 1 else error_line(log or self.said)
        return f"{self.node or self.pod}: {words or self.end or 'failed'}"[:_HEADLINE_LIMIT]


def first_failure(pods: Iterable[Object]) -> FailedContainer | None:
    """The container that failed first; None when no failed pod is left."""
    return next(iter(failures_in_order(pods)), None)


def failures_in_order(pods: Iterable[Object]) -> list[FailedContainer]:
    """The containers that failed, the first one first; of the same second those that nobody has killed come first."""
    # By age: when one node dies, the others soon fail as well, or are ended.
    failures = [
        ((is_being_deleted(pod), time, failed.is_killed, failed.text), failed)
        for pod in pods
        for time, failed in _failures(pod)
    ]
    return [failed for _, failed in sorted(failures, key=lambda each: each[0])]


def named_in(message: str) -> FailedContainer | None:
    """The failed container or pod that a message names in the words of `FailedContainer.text`."""
    found = _NAMED.search(parts_of(message).facts)
    return FailedContainer(found[0], found[1], found[2] or "") if found else None


class FailureParts(NamedTuple):
    """The message of the condition Failed."""

    headline: str
    """The error that the program has written; empty where nobody knows it."""
    facts: str
    """What pod and Jobs say."""
    log: tuple[str, ...]
    """The end of the log."""


def parts_of(message: str) -> FailureParts:
    """The parts of a message that `failure_message` has made, or an earlier version, which had no headline."""
    lines = message.splitlines()
    heading = lines.index(LOG_HEADING) if LOG_HEADING in lines else len(lines)
    log = tuple(lines[heading + 1 :])
    if heading > 1 and _NAMED.match(lines[1]):
        return FailureParts(lines[0], " ".join(lines[1:heading]), log)
    return FailureParts("", " ".join(lines[:heading]), log)


def failure_message(culprit: FailedContainer | None, said: str, log: Sequence[str] = ()) -> str:
    """The message of the condition Failed: a line with the failure, one with the facts, and the end of the log.

    Args:
        culprit: the container that failed; None if it is unknown.
        said: what the Jobs say.
        log: the last lines of its log. Default: none.
    """
    facts = [said]
    if culprit is not None:
        headline, text = culprit.headline(log), culprit.text
        if culprit.end in headline:  # what the kubelet says is said once
            text = text.replace(f" ({culprit.end})", f" ({culprit.end.partition(':')[0]})")
        facts = [headline, f"{text}; {said}"]
    return "\n".join([*facts, *([LOG_HEADING, *log] if log else [])])


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
        yield end.get("finishedAt") or "", _failed_container(pod, container, end)
    if not failed:
        details = ": ".join(text for text in (status.get("reason"), status.get("message")) if text)
        text = f"pod {name} failed{': ' + details if details else ''}"
        yield (
            _UNKNOWN_TIME,
            FailedContainer(
                text, name, node=node_name(pod), end=_plain(details, _MESSAGE_LIMIT), is_explained_by_log=False
            ),
        )


def _failed_container(pod: Object, container: str, end: Object) -> FailedContainer:
    code, reason, message = end["exitCode"], end.get("reason") or "", (end.get("message") or "").strip()
    signal, is_own = _SIGNALS.get(code), _is_own(reason)
    how = f"exit code {code}{f' ({signal})' if signal else ''}"
    if not is_own:
        said = _plain(message, _MESSAGE_LIMIT)
        how = f"{reason}: {said}" if said else f"{reason} (exit code {code})"
    return FailedContainer(
        f"pod {name_of(pod)}: {_exit(container, end)}",
        name_of(pod),
        container,
        node_name(pod),
        how,
        tuple(_plain(line, _LINE_LIMIT) for line in message.splitlines()) if is_own else (),
        is_explained_by_log=is_own,
        is_killed=is_own and code in _KILLED,
    )


def _is_own(reason: str) -> bool:
    """Whether the program has ended by itself."""
    return reason in {"", "Error"}


def _exit(container: str, end: Object) -> str:
    text = f"container {container} exited with code {end['exitCode']}"
    reason, message = end.get("reason") or "", (end.get("message") or "").strip()
    if _is_own(reason):
        # The program has ended by itself: several lines are the end of its log, which stands below.
        said = message if len(message.splitlines()) == 1 else ""
        return f"{text}: {_plain(said, _LINE_LIMIT)}" if said else text
    return f"{text} ({reason}{': ' if message else ''}{_plain(message, _MESSAGE_LIMIT)})"


def _plain(message: str, limit: int) -> str:
    line = " ".join(message.split())[:limit]
    return "".join(char for char in line if char.isprintable())
