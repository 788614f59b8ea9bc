"""What happens to a pod: the one model from which status, `trainer explain`, page, history and metrics speak.

It is derived from the pod's object and its Job alone, without a clock. Where they do not say why something happened,
the model does not say it either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from trainer.kube.objects import (
    Object,
    find_condition,
    has_finished,
    is_being_deleted,
    is_condition_true,
    metadata_of,
    name_of,
)
from trainer.workloads.container_end import SIGKILL, UNKNOWN_END, ContainerEnd, ends_of, last_end
from trainer.workloads.containers import (
    container_status,
    container_statuses,
    has_ended,
    is_sidecar,
    main_container,
    unended_beside,
)
from trainer.workloads.disruption import Disruption, Taken, taken_away

SAVED_AND_ENDED: Final = 75
"""Exit code (EX_TEMPFAIL) of a training that was asked to end, has saved its state, and goes on from there."""
UNSEEN = "Unseen"
"""The reason of a pod that starts, has no node, and no word of a scheduler."""
PREPARING = "PreparingPod"
"""The reason of a pod that starts, and waits for its volumes or its network."""
CREATING = "ContainerCreating"
"""The reason of a pod that starts, and pulls the image of its container."""
INITIALIZING = "PodInitializing"
"""The reason of a pod that starts, and whose init container has not ended, or whose sidecar has not started."""
CRASHING = "CrashLoopBackOff"
"""The reason of a pod that waits until a container that fails repeatedly is started again."""
HELD = "EndedAndHeld"
"""The reason of a pod whose training has ended, while another container keeps it."""
KILLED = "SIGKILL"
"""The reason of a pod whose container was killed, where nothing says why."""
TERMINATED = "SIGTERM"
"""The reason of a pod whose container was asked to end, where nothing says by whom."""
NODE_NOT_READY = "NodeNotReady"
"""Reason of the event that the node lifecycle controller sends about each ready pod of a node that is not ready."""


class PodState(StrEnum):
    """What a pod is doing, or how it has ended."""

    WAITING = "Waiting"
    """It cannot be scheduled or started; the reason says why."""
    STARTING = "Starting"
    """It is on its way to its node and to its first start."""
    RUNNING = "Running"
    """The container that trains runs."""
    HELD = "Held"
    """The container that trains has ended with 0, and another one keeps the pod."""
    TERMINATING = "Terminating"
    """It was deleted: by its Job as the reason says, or by somebody who is not known (reason Deleted)."""
    DISRUPTED = "Disrupted"
    """Somebody took it away: evicted, preempted, deleted by somebody else than its Job; or the training has saved its
    state after a signal and ended."""
    KILLED = "Killed"
    """A process of it was killed: by the kernel for memory, or by a signal whose sender is not known."""
    FAILED = "Failed"
    """A container has ended with an exit code other than 0, or the kubelet has refused the pod."""
    SUCCEEDED = "Succeeded"
    """All containers have ended with 0."""


_WORDS = frozenset(Disruption)
_SHOWN = {UNSEEN: "Pending", PREPARING: CREATING}
_SECOND = len("2026-01-01T00:00:00")


@dataclass(frozen=True, slots=True)
class PodLife:
    """One pod at one moment."""

    pod: str
    """Name of the pod."""
    state: PodState
    reason: str = ""
    """One CamelCase word: that of Kubernetes where it has one, such as Unschedulable, EvictionByEvictionAPI, OOMKilled
    or Error; else one of this module, or of the enumerations `Disruption` and `DeletedBy`. Default: none."""
    message: str = ""
    """What kubelet, scheduler, program or controller says of it. Default: nothing."""
    container: str = ""
    """The container that it is about. Default: the pod as a whole."""
    since: str = ""
    """When this began, in RFC 3339 to the second: of a deletion when it was asked for. Default: unknown."""
    node: str = ""
    """The node of the cluster that it was given. Default: none yet."""
    exit_code: int | None = None
    """Of `container`, or of the first one that has failed. Default: it has not ended."""
    held_by: tuple[str, ...] = ()
    """The containers that still run although the one that trains has ended for good. Default: none."""
    is_going: bool = False
    """Whether it was deleted and is still there, with containers that may run. Default: False."""
    has_ended: bool = False
    """Whether no container of it runs again. Default: False."""
    node_lost_since: str = ""
    """Since when nobody hears of its kubelet, in RFC 3339, so that it runs or not. Default: nothing says so."""

    @property
    def disruption(self) -> Disruption | None:
        """Why it was disrupted, as one of few words; None if it was not."""
        if self.state is not PodState.DISRUPTED:
            return None
        return Disruption(self.reason) if self.reason in _WORDS else Disruption.OTHER

    @property
    def word(self) -> str:
        """What it does in one word, the one that kubectl shows where it has one."""
        if self.is_going:
            return str(PodState.TERMINATING)
        return _SHOWN.get(self.reason) or self.reason or str(self.state)

    @property
    def is_failure(self) -> bool:
        """Whether it ended badly by itself, or by a signal or the kernel."""
        return self.state in {PodState.FAILED, PodState.KILLED}


class Wait(NamedTuple):
    """Why a pod cannot be scheduled or started; see `PodLife`."""

    reason: str
    message: str
    """With the name of the container if one waits."""
    container: str
    since: str


class _Found(NamedTuple):
    """What the fields of `PodLife` say of a pod."""

    state: PodState
    reason: str = ""
    message: str = ""
    container: str = ""
    since: str = ""
    exit_code: int | None = None
    held_by: tuple[str, ...] = ()


def pod_life(pod: Mapping[str, Any], job: Mapping[str, Any] | None = None) -> PodLife:
    """What happens to a pod; pure.

    Args:
        pod: the object.
        job: the Job that controls it. Default: unknown, so that who has deleted the pod is not known.
    """
    node, is_over = str((pod.get("spec") or {}).get("nodeName") or ""), has_finished(pod)
    state, reason, message, container, since, exit_code, held_by = _found(pod, job)
    said = str(reason), message.strip(), container, since, node
    is_going = is_being_deleted(pod) and not is_over
    return PodLife(name_of(pod), state, *said, exit_code, held_by, is_going, is_over, node_lost_since(pod))


def _found(pod: Mapping[str, Any], job: Mapping[str, Any] | None) -> _Found:
    status = pod.get("status") or {}
    taken = taken_away(pod, job)
    if status.get("phase") == "Succeeded":
        since = max((end.finished for end in ends_of(pod)), default="")
        if taken is not None and "" < taken.since[:_SECOND] < since[:_SECOND]:  # the answer of its program to SIGTERM
            return _Found(_state(taken), taken.reason, taken.message, main_container(pod), taken.since, 0)
        return _Found(PodState.SUCCEEDED, "Completed", since=since)
    has_failed = status.get("phase") == "Failed"
    end = _bad_end(pod, has_failed=has_failed)
    if taken is not None and (has_failed or is_being_deleted(pod)) and not _is_before(end, taken, pod):
        container, code = (end.container, end.exit_code) if end is not None else ("", None)
        return _Found(_state(taken), taken.reason, taken.message, container, taken.since, code)
    if end is not None:
        return _of_end(pod, end)
    if has_failed:
        return _Found(PodState.FAILED, str(status.get("reason") or "Failed"), str(status.get("message") or ""))
    return _present(pod)


def _state(taken: Taken) -> PodState:
    return PodState.DISRUPTED if taken.is_disruption else PodState.TERMINATING


def wait_of(pod: Mapping[str, Any]) -> Wait | None:
    """The first reason for which a pod cannot be scheduled or started; None without one."""
    return next(_waits(pod), None)


def node_lost_since(pod: Mapping[str, Any]) -> str:
    """Since when nobody hears of the kubelet of a pod that was ready before, in RFC 3339; empty if nothing says so.

    It shows on the pod, so that nobody has to watch nodes: the node lifecycle controller sets its condition Ready to
    False, and nothing else. A kubelet gives a reason whenever it says that a pod is not ready, and says as much of
    ContainersReady unless a readiness gate is the reason.
    """
    ready = find_condition(pod, "Ready") or {}
    is_silent = ready.get("status") == "False" and not ready.get("reason") and is_condition_true(pod, "ContainersReady")
    return str(ready.get("lastTransitionTime") or "") if is_silent and not has_finished(pod) else ""


# How its containers have ended.


def _bad_end(pod: Mapping[str, Any], *, has_failed: bool) -> ContainerEnd | None:
    """The first end of a container that counts against its pod; of the same second one that nobody has killed.

    Of a pod that goes on, only that of the container that trains counts, once it is final.
    """
    bad = [end for end in ends_of(pod) if end.exit_code or end.is_out_of_memory]
    if bad and not has_failed:
        main = main_container(pod)
        bad = [end for end in bad if end.container == main and has_ended(pod, main)]
    return min(bad, key=lambda end: (end.finished or "~", end.is_killed), default=None)


def _is_before(end: ContainerEnd | None, taken: Taken, pod: Mapping[str, Any]) -> bool:
    """Whether a container had ended before its pod was taken away.

    A pod that has ended is deleted without a grace period: within the same second that tells a pod that failed from one
    that was deleted. Who takes a node away ends containers before the API server hears of it, by signals.
    """
    if end is None or not end.finished or not taken.since:
        return False
    finished, since = end.finished[:_SECOND], taken.since[:_SECOND]
    if taken.is_deletion:
        return finished < since or (finished == since and metadata_of(pod).get("deletionGracePeriodSeconds") == 0)
    return finished < since and not end.is_killed and end.exit_code != SAVED_AND_ENDED


def _of_end(pod: Mapping[str, Any], end: ContainerEnd) -> _Found:
    held_by = () if has_finished(pod) else tuple(unended_beside(pod, end.container))
    if end.exit_code == SAVED_AND_ENDED:
        state, reason = PodState.DISRUPTED, str(Disruption.SAVED)
    elif end.is_out_of_memory or end.reason == UNKNOWN_END:
        state, reason = PodState.KILLED, end.reason
    elif end.is_killed:
        state, reason = PodState.KILLED, KILLED if end.exit_code == SIGKILL else TERMINATED
    else:
        state, reason = PodState.FAILED, end.reason or "Error"
    return _Found(state, reason, end.message, end.container, end.finished, end.exit_code, held_by)


# What a pod that goes on is doing.

_ON_ITS_WAY = frozenset({"", CREATING, INITIALIZING})
"""Waiting reasons of containers without a problem."""
_SAME = {"ErrImagePull": "ImagePullBackOff"}
"""The kubelet alternates between these two reasons, which count as one."""


def _waits(pod: Mapping[str, Any]) -> Iterator[Wait]:
    scheduled = find_condition(pod, "PodScheduled") or {}
    if scheduled.get("status") == "False":
        since = str(scheduled.get("lastTransitionTime") or "")
        yield Wait(_word(scheduled.get("reason")) or "Unschedulable", str(scheduled.get("message") or ""), "", since)
    for status in container_statuses(pod):
        waiting = (status.get("state") or {}).get("waiting") or {}
        reason = str(waiting.get("reason") or "")
        if waiting and reason not in _ON_ITS_WAY:
            name, end = str(status.get("name") or ""), last_end(status)
            said = f"container {name}: {waiting.get('message') or reason}"
            yield Wait(_SAME.get(reason) or _word(reason) or "Waiting", said, name, end.finished if end else "")


def _word(reason: object) -> str:
    """The reason of a container runtime as a valid reason of a condition."""
    return re.sub(r"^[^A-Za-z]+|[^A-Za-z0-9]", "", str(reason or ""))


def _present(pod: Mapping[str, Any]) -> _Found:
    main = main_container(pod)
    own = container_status(pod, main)
    state, end = own.get("state") or {}, last_end(own)
    if "terminated" in state and end is not None and has_ended(pod, main):
        held_by = tuple(unended_beside(pod, main))
        found, reason = (PodState.HELD, HELD) if held_by else (PodState.SUCCEEDED, "Completed")
        return _Found(found, reason, "", main, end.finished, end.exit_code, held_by)
    wait = wait_of(pod)
    if wait is not None:
        last = last_end(container_status(pod, wait.container))
        return _Found(PodState.WAITING, *wait, None if last is None else last.exit_code)
    if "running" in state or end is not None:  # or between two runs
        since = str((state.get("running") or {}).get("startedAt") or (end.finished if end else ""))
        return _Found(PodState.RUNNING, "", "", main, since)
    return _start(pod, own, main)


def _start(pod: Mapping[str, Any], own: Object, main: str) -> _Found:
    """Of a pod whose main container has never run."""
    status = pod.get("status") or {}
    if not ((pod.get("spec") or {}).get("nodeName") or container_statuses(pod) or find_condition(pod, "PodScheduled")):
        return _Found(PodState.STARTING, UNSEEN)
    is_pending = status.get("phase") in {None, "Pending"}
    if is_pending and not is_condition_true(pod, "PodReadyToStartContainers"):  # KEP-3085
        return _Found(PodState.STARTING, PREPARING)
    for each in (pod.get("spec") or {}).get("initContainers") or []:
        name = str(each.get("name") or "")
        shown = container_status(pod, name)
        if not (shown.get("started") if is_sidecar(each) else "terminated" in (shown.get("state") or {})):
            return _Found(PodState.STARTING, INITIALIZING, "", name)
    if is_pending or own:
        return _Found(PodState.STARTING, CREATING, "", main)
    return _Found(PodState.RUNNING, "", "", main)  # it says no more than its phase
