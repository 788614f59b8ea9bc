"""Finds the pod that failed or was taken away first, and says it in the words of a condition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from trainer.api.jobset_pods import node_name
from trainer.framework.plugin_api.error_lines import error_line, is_exception, is_lost_connection
from trainer.kube.objects import Object, controller_of, find_condition, is_condition_true, name_of, uid_of
from trainer.workloads.container_end import OUT_OF_MEMORY, SIGNALS, UNKNOWN_END, ContainerEnd, ends_of, last_end
from trainer.workloads.containers import container_statuses, memory_limit
from trainer.workloads.disruption import DeletedBy, Disruption, Taken
from trainer.workloads.killed_child import killed_child
from trainer.workloads.pod_life import PodLife, PodState, pod_life

_UNKNOWN_TIME = "unknown"
"""Sorts after all timestamps."""
_SECOND = len("2026-01-01T00:00:00")
_MESSAGE_LIMIT = 300
"""Limit of the characters of a container runtime's message about an end."""
_LINE_LIMIT = 1024
"""Limit of the characters of a program's termination message, such as an initializer's, whose remedy comes last."""
_HEADLINE_LIMIT = 500
"""Characters of a headline; the message of a condition, with facts and log, stays below 8 KiB."""
LOG_HEADING = "last lines of its log:"
"""The line in the message of a condition below which a log is quoted."""
_NAMED = re.compile(
    r"\bpod ([a-z0-9][a-z0-9.-]{0,252})(?:: container ([a-z0-9-]{1,63}) exited| failed| was | has saved )"
)
_TAKEN_AWAY = {
    Disruption.EVICTION: "was evicted",
    Disruption.PREEMPTION: "was preempted for a pod of a higher priority",
    Disruption.TAINT: "was deleted for a taint of {node}",
    Disruption.KUBELET: "was ended by the kubelet of {node}",
    Disruption.POD_GC: "was deleted, since {node} is gone or out of service",
    Disruption.DELETED: "was deleted, and not by its Job",
    Disruption.SAVED: "has saved its state and ended (exit code 75)",
    Disruption.OTHER: "was disrupted",
}
"""What was done to a pod."""
_DELETED = "was deleted; by whom is not known"
_TAKEN = re.compile(r"pod ([a-z0-9][a-z0-9.-]{0,252}) ((?:was|has saved) .+)")


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
    """Whether it was ended by a signal, such as because another node had failed. Default: False."""
    is_taken_away: bool = False
    """Whether the pod was disrupted or deleted, so that no program is the cause. Default: False."""
    disruption: Disruption | None = None
    """Why it was disrupted; None for a pod that was deleted, by whom is not known. Default: it was not."""
    since: str = ""
    """When, in RFC 3339. Default: unknown."""
    memory: str = ""
    """The limit of its memory in words, of a container that was or may have been killed for it. Default: none."""

    @classmethod
    def recalled(cls, text: str) -> Self | None:
        """A pod that was taken away, from its `text` as a condition keeps it; None where that knows of none."""
        found = _TAKEN.fullmatch(text)
        if found is None or text.startswith(_DELETED, found.start(2)):
            return None
        by_somebody = text.endswith(_TAKEN_AWAY[Disruption.DELETED])
        disruption = Disruption.DELETED if by_somebody else Disruption.OTHER
        return cls(text, found[1], end=found[2], is_explained_by_log=False, is_taken_away=True, disruption=disruption)

    @classmethod
    def gang(cls, pod_group: str, taken: Taken) -> Self:
        """A gang that was disrupted as a whole, of whose pods nothing is left.

        Args:
            pod_group: the name of its PodGroup.
            taken: what the PodGroup says of it.
        """
        disruption = Disruption(taken.reason) if taken.reason in set(Disruption) else Disruption.OTHER
        said = ": ".join(part for part in (taken.reason, _plain(taken.message, _MESSAGE_LIMIT)) if part)
        end = f"{_TAKEN_AWAY[disruption].format(node='its node')} ({said})"
        return cls(
            f"PodGroup {pod_group} {end}",
            "",
            node="gang",
            end=end,
            is_explained_by_log=False,
            is_taken_away=True,
            disruption=disruption,
            since=taken.since,
        )

    def headline(self, log: Sequence[str] = ()) -> str:
        """The failure in one line: the node, and the error that the program has written last, else how it ended.

        Args:
            log: the last lines of its log. Default: none.
        """
        words = ""
        if self.is_explained_by_log:
            words = self.said[0] if len(self.said) == 1 else error_line(log or self.said)
        return f"{self.node or self.pod}: {words or self.end or 'failed'}"[:_HEADLINE_LIMIT]

    @property
    def may_be_of_job(self) -> bool:
        """Whether it is a deletion that its Job may have asked for, such as at its deadline."""
        return self.is_taken_away and self.disruption in {None, Disruption.DELETED}

    def has_lost_another(self, log: Sequence[str]) -> bool:
        """Whether the program has ended since it lost another one, so that the cause is most likely there."""
        return self.is_explained_by_log and is_lost_connection(log or self.said)

    def after(self, log: Sequence[str]) -> FailedContainer:
        """The same failure, with what the last lines of the log say of a process that was killed."""
        if not self.is_explained_by_log or not is_killed_child("", (*log, *self.said)):
            return self
        memory = f", {self.memory}" if self.memory else ""
        text = f"{self.text.removesuffix(f'; {self.memory}')}; {_KILLED_CHILD}{memory}"
        return replace(self, text=text, end=_KILLED_CHILD, is_explained_by_log=False)


_KILLED_CHILD = "a process of it was killed (SIGKILL)"


def is_killed_child(text: str, log: Sequence[str]) -> bool:
    """Whether a container has ended because a process of it was killed.

    Args:
        text: what was said of the failure, in the words of `FailedContainer.text`.
        log: the last lines of its log. An error of the program counts more where the launcher has killed the others.
    """
    if _KILLED_CHILD in text:
        return True
    killed = killed_child(log)
    words = error_line(log)
    return killed is not None and (killed.is_first or not is_exception(words) or is_lost_connection([words]))


def first_failure(pods: Iterable[Object], *, deleted_first: str = "") -> FailedContainer | None:
    """The one that failed or was taken away first; None when nothing is left of it; see `failures_in_order`."""
    return next(iter(failures_in_order(pods, deleted_first=deleted_first)), None)


def failures_in_order(
    pods: Iterable[Object], *, jobs: Iterable[Object] = (), deleted_first: str = ""
) -> list[FailedContainer]:
    """The pods that failed or were taken away, the first one first.

    When one node ends, the others soon fail as well, or are ended. So within the same second a cause goes before what
    it may have caused: first a disruption, then an own failure, then the end by a signal, and last a deletion, which
    its Job asks for as well.

    Args:
        pods: those of one attempt.
        jobs: their Jobs, which know whether they have deleted their pods. Default: unknown.
        deleted_first: uid of the pod that was deleted while no other one had failed. Default: unknown.
    """
    by_uid = {uid_of(job): job for job in jobs}
    found = []
    for pod in pods:
        life = pod_life(pod, by_uid.get(str((controller_of(pod) or {}).get("uid") or "")))
        # Once it has ended, the API server keeps the time of that for the one at which its deletion was asked for.
        if deleted_first and uid_of(pod) == deleted_first and life.state in _MAY_BE_DELETED:
            life = replace(life, state=PodState.DISRUPTED, reason=Disruption.DELETED)
        if _is_failure(life):
            found.append((_order(life), _failed(pod, life)))
    found.sort(key=lambda each: (*each[0], each[1].text))
    alike = sum(order == found[0][0] for order, _ in found) - 1 if found else 0
    in_order = [failed for _, failed in found]
    if alike and in_order[0].is_taken_away and in_order[0].disruption is None:
        more = f", and {alike} more {'was' if alike == 1 else 'were'} deleted within the same second"
        in_order[0] = replace(in_order[0], text=f"{in_order[0].text}{more}")
    return in_order


def _is_failure(life: PodLife) -> bool:
    """Whether a pod may be the cause; one that its Job has deleted is none, nor is one that goes on."""
    if life.state is PodState.TERMINATING:
        return life.reason not in _CONSEQUENCES
    return (life.is_failure and life.has_ended) or (life.state is PodState.DISRUPTED and not life.held_by)


_CONSEQUENCES = frozenset(DeletedBy)
_MAY_BE_DELETED = frozenset({PodState.TERMINATING, PodState.FAILED, PodState.KILLED})
"""States of a pod that somebody has deleted and that is still there."""


def _order(life: PodLife) -> tuple[str, int]:
    is_out_of_memory = life.state is PodState.KILLED and life.reason == OUT_OF_MEMORY
    if is_out_of_memory or life.disruption not in {None, Disruption.SAVED}:
        rank = 0
    elif life.state is PodState.FAILED:
        rank = 1
    else:
        rank = 3 if life.state is PodState.TERMINATING else 2
    return life.since[:_SECOND] or _UNKNOWN_TIME, rank


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
    for end in filter(None, map(last_end, container_statuses(pod))):
        if end.exit_code:
            return f"pod {name_of(pod)}: {_exit(end)}"
    return ""


def has_own_reason(job: Object) -> bool:
    """Whether a Job has failed for another reason than its pods, and has deleted them for that."""
    conditions = (find_condition(job, kind) or {} for kind in ("FailureTarget", "Failed"))
    return any(each.get("status") == "True" and each.get("reason") == "DeadlineExceeded" for each in conditions)


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


def _failed(pod: Object, life: PodLife) -> FailedContainer:
    if life.state in {PodState.DISRUPTED, PodState.TERMINATING}:
        return _taken_away(pod, life)
    end = next((end for end in ends_of(pod) if end.container == life.container), None)
    if end is not None:
        return _failed_container(pod, end)
    details = ": ".join(text for text in (life.reason if life.reason != "Failed" else "", life.message) if text)
    text = f"pod {life.pod} failed{': ' + details if details else ''}"
    shown = _plain(details, _MESSAGE_LIMIT)
    return FailedContainer(text, life.pod, node=node_name(pod), end=shown, is_explained_by_log=False, since=life.since)


def _taken_away(pod: Object, life: PodLife) -> FailedContainer:
    words, said = _DELETED, ""
    if life.disruption is not None:
        words = _TAKEN_AWAY[life.disruption].format(node=f"node {life.node}" if life.node else "its node")
        if life.disruption not in {Disruption.DELETED, Disruption.SAVED}:
            said = f" ({': '.join(part for part in (life.reason, _plain(life.message, _MESSAGE_LIMIT)) if part)})"
    return FailedContainer(
        f"pod {life.pod} {words}{said}",
        life.pod,
        node=node_name(pod),
        end=f"{words}{said}",
        is_explained_by_log=False,
        is_taken_away=True,
        disruption=life.disruption,
        since=life.since,
    )


def _failed_container(pod: Object, end: ContainerEnd) -> FailedContainer:
    signal, name = SIGNALS.get(end.exit_code), name_of(pod)
    how = f"exit code {end.exit_code}{f' ({signal})' if signal else ''}"
    if not end.is_own:
        said = _plain(end.message, _MESSAGE_LIMIT)
        how = f"{end.reason}: {said}" if said else f"{end.reason} (exit code {end.exit_code})"
    memory = _memory(pod, end)
    is_for_memory = end.is_out_of_memory or end.is_killed
    return FailedContainer(
        f"pod {name}: {_exit(end)}{f'; {memory}' if memory and is_for_memory else ''}",
        name,
        end.container,
        node_name(pod),
        how,
        tuple(_plain(line, _LINE_LIMIT) for line in end.message.splitlines()) if end.is_own else (),
        is_explained_by_log=end.is_own,
        is_killed=end.is_killed,
        since=end.finished,
        memory=memory,
    )


LIMIT = "its limit of memory is "
NO_LIMIT = "it has no limit of memory"


def _memory(pod: Object, end: ContainerEnd) -> str:
    limit = memory_limit(pod, end.container)
    if limit is None or end.reason == UNKNOWN_END:
        return ""
    return f"{LIMIT}{limit}" if limit else NO_LIMIT


def _exit(end: ContainerEnd) -> str:
    text = f"container {end.container} exited with code {end.exit_code}"
    if end.is_own:
        # The program has ended by itself: several lines are the end of its log, which stands below.
        said = end.message if len(end.message.splitlines()) == 1 else ""
        return f"{text}: {_plain(said, _LINE_LIMIT)}" if said else text
    return f"{text} ({end.reason}{': ' if end.message else ''}{_plain(end.message, _MESSAGE_LIMIT)})"


def _plain(message: str, limit: int) -> str:
    line = " ".join(message.split())[:limit]
    return "".join(char for char in line if char.isprintable())
