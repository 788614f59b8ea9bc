"""The pods of a JobSet with a problem, as an index of the pod cache.

A job may have thousands of pods, and nearly all of their changes say nothing new about it. So each pod is classified
once for each change, from its status alone; a reconcile asks the index and decodes single pods as examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from trainer.api.jobset_labels import JOBSET_NAME, JOBSET_UID, REPLICATED_JOB
from trainer.api.jobset_pods import age_of, is_made_by
from trainer.framework import Reader, first_failure
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object, ObjectKey, name_of, namespace_of, uid_of
from trainer.kube.resource import JOBS, PODS
from trainer.workloads import JOBSETS

POD_PROBLEMS = "jobset-pod-problems"
"""Name of the index."""

CRASHING = "CrashLoopBackOff"
_STARTS = " is starting"
"""Contains a space, which no name of a replicated Job has."""
_UNSEEN = " is unseen"
_FAILED = " failed"
_STARTING = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Waiting reasons of containers without a problem."""
_SAME = {"ErrImagePull": "ImagePullBackOff"}
"""The kubelet alternates between these two reasons, which count as one."""


class _Waiting(msgspec.Struct, frozen=True):
    reason: str | None = None
    message: str | None = None


class _State(msgspec.Struct, frozen=True):
    waiting: _Waiting | None = None


class _Container(msgspec.Struct, frozen=True):
    name: str = ""
    state: _State | None = None


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str | None = None
    conditions: tuple[_Condition, ...] | None = None
    init_container_statuses: tuple[_Container, ...] | None = None
    container_statuses: tuple[_Container, ...] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str | None = None


class _Pod(msgspec.Struct, frozen=True):
    spec: _Spec | None = None
    status: _Status | None = None


_pod = msgspec.json.Decoder(_Pod)


@dataclass(frozen=True, slots=True)
class Wait:
    """The reason why one pod waits."""

    reason: str
    message: str
    """The message, with the name of the container if one waits."""


def problem_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    """Predicate: a pod got or lost a problem."""
    return _lasting_problems(old) != _lasting_problems(new)


def problems_of(pod: CachedObject) -> tuple[str, ...]:
    """Index function of `POD_PROBLEMS`; `PodIndex` has the queries.

    A pod that only its labels call one of a JobSet has no problem to report.
    """
    found = _problems(pod)
    job = pod.controller if found else None
    return found if job is not None and is_made_by(job.kind, job.name, pod.labels) else ()


def is_failure(pod: CachedObject) -> bool:
    """Whether a pod of a JobSet has failed, deleted or not."""
    return any(problem.endswith(_FAILED) for problem in problems_of(pod)[:1])


def is_unseen(pod: CachedObject) -> bool:
    """Whether a pod of a JobSet has no node and no reason from a scheduler."""
    return any(problem.endswith(_UNSEEN) for problem in problems_of(pod))


def _problems(pod: CachedObject) -> tuple[str, ...]:
    decoded = _pod.decode(pod.raw)
    status = decoded.status or _Status()
    labels, is_going = pod.labels, pod.meta.deletion_timestamp is not None
    owner = _owner(pod.key.namespace, labels.get(JOBSET_NAME, ""), labels.get(JOBSET_UID, ""))
    if status.phase == "Failed":
        going = () if is_going else (f"{owner} failed in {labels.get(REPLICATED_JOB, '')}",)
        return (f"{owner}{_FAILED}", *going)
    if is_going or status.phase == "Succeeded":
        return ()
    wait = _wait(status)
    if wait is None:
        unseen = (f"{owner}{_UNSEEN}",) if _has_no_scheduler(decoded.spec or _Spec(), status) else ()
        return () if _has_sandbox(status) else (f"{owner}{_STARTS}", *unseen)
    return (f"{owner} crashing",) if wait.reason == CRASHING else (f"{owner} waits", f"{owner} waits for {wait.reason}")


def wait_of(pod: Object) -> Wait | None:
    """The problem for which a pod waits; None without one."""
    return _wait(msgspec.convert(pod, _Pod).status or _Status())


class PodIndex:
    """Queries of the index for the pods of one JobSet."""

    def __init__(self, reader: Reader, jobset: Object) -> None:
        self.reader = reader
        self.jobset = jobset
        namespace, name = namespace_of(jobset), name_of(jobset)
        self._with_uid, self._without_uid = (_owner(namespace, name, uid) for uid in (uid_of(jobset), ""))

    def waiting(self, reason: str = "") -> set[ObjectKey]:
        """Pods that cannot start, for one reason or any."""
        return self._keys(f"waits for {reason}" if reason else "waits")

    def starting(self) -> set[ObjectKey]:
        """Pods with a node whose containers have not been created, without a reason in their status."""
        return self._keys(_STARTS.strip())

    def unseen(self) -> set[ObjectKey]:
        """Pods without a node and without a reason from a scheduler."""
        return self._keys(_UNSEEN.strip())

    def crashing(self) -> set[ObjectKey]:
        """Pods with a container that fails repeatedly."""
        return self._keys("crashing")

    def failed(self) -> list[Object]:
        """Failed pods, whether they are being deleted or not."""
        found = [self.reader.get(PODS, key) for key in self._keys(_FAILED.strip())]
        return [pod for pod in found if pod is not None]

    def failed_in(self, replicated_job: str) -> set[ObjectKey]:
        """Failed pods of a replicated Job that are not being deleted."""
        return self._keys(f"failed in {replicated_job}")

    def job(self, key: ObjectKey) -> Object | None:
        """The metadata of a Job."""
        return self.reader.get(JOBS, key)

    def _keys(self, problem: str) -> set[ObjectKey]:
        return {
            *self.reader.keys(PODS, POD_PROBLEMS, f"{self._with_uid} {problem}"),
            *self.reader.keys(PODS, POD_PROBLEMS, f"{self._without_uid} {problem}"),
        }


def _lasting_problems(pod: CachedObject | None) -> list[str]:
    """The problems of a pod that is more than on its way to its node and its first start."""
    return [] if pod is None else [problem for problem in problems_of(pod) if not problem.endswith((_STARTS, _UNSEEN))]


def _has_sandbox(status: _Status) -> bool:
    """Whether its volumes are mounted and its network is made (KEP-3085)."""
    if status.phase not in {None, "Pending"}:
        return True
    return any(each.type == "PodReadyToStartContainers" and each.status == "True" for each in status.conditions or ())


def _has_no_scheduler(spec: _Spec, status: _Status) -> bool:
    """Whether the pod has neither a node nor a scheduler's reason; a pod with container statuses has a node."""
    if spec.node_name or status.container_statuses or status.init_container_statuses:
        return False
    return not any(each.type == "PodScheduled" for each in status.conditions or ())


def _owner(namespace: str, name: str, uid: str) -> str:
    """The index value with the namespace of the pod, since pods of any namespace may have a uid as a label."""
    return f"{namespace}/{name}/{uid}"


def _wait(status: _Status) -> Wait | None:
    return next(_waits(status), None)


def _waits(status: _Status) -> Iterator[Wait]:
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            yield Wait(_word(condition.reason) or "Unschedulable", condition.message or "")
    for container in (*(status.init_container_statuses or ()), *(status.container_statuses or ())):
        waiting = container.state.waiting if container.state is not None else None
        reason = (waiting.reason or "") if waiting is not None else ""
        if waiting is not None and reason not in _STARTING:
            yield Wait(
                _SAME.get(reason) or _word(reason) or "Waiting",
                f"container {container.name}: {waiting.message or reason}",
            )


def _word(reason: str | None) -> str:
    """The reason of a container runtime as a valid reason of a condition."""
    return re.sub(r"^[^A-Za-z]+|[^A-Za-z0-9]", "", reason or "")


REMEMBERED = 512
"""Most JobSets with a remembered pod, a few KiB each; the least recently used is dropped first."""

_Owner = tuple[str, str, str]
"""Namespace, name and uid of a JobSet, from labels of its pods."""


@dataclass(frozen=True, slots=True)
class _Deleted:
    restart_attempt: int
    pod: Object


class DeletedPods:
    """Remembers the pod that failed first in the latest attempt of each JobSet, in memory only."""

    def __init__(self) -> None:
        self._found: BoundedDict[_Owner, _Deleted] = BoundedDict(REMEMBERED)

    def problem_changed(self, old: CachedObject | None, new: CachedObject | None) -> bool:
        """Predicate: a pod got or lost a problem; it remembers a failed pod that is deleted."""
        if new is None and old is not None and is_failure(old):
            self._remember(old.decode(), (old.key.namespace, old.labels[JOBSET_NAME], old.labels.get(JOBSET_UID, "")))
        return problem_changed(old, new)

    def before(self, jobset: Object) -> list[Object]:
        """The pod that failed first in the attempt before the present one; empty if unknown."""
        attempt = ((jobset.get("status") or {}).get("restarts") or 0) - 1
        owners = ((namespace_of(jobset), name_of(jobset), uid) for uid in (uid_of(jobset), ""))
        found = (self._found.get(owner) for owner in owners)
        return [gone.pod for gone in found if gone is not None and gone.restart_attempt == attempt]

    def _remember(self, pod: Object, owner: _Owner) -> None:
        gone, present = _Deleted(age_of(pod).restart_attempt, pod), self._found.get(owner)
        if present is not None and present.restart_attempt >= gone.restart_attempt:
            is_earlier = present.restart_attempt == gone.restart_attempt and _is_first(pod, present.pod)
            gone = gone if is_earlier else present
        self._found[owner] = gone


def _is_first(pod: Object, other: Object) -> bool:
    failure = first_failure([pod, other])
    return failure is not None and failure.pod == name_of(pod)


ACTIVE = "jobset-active"
"""Name of the index of JobSets with an active Job, each as `<namespace>/<name>`."""

REMEMBERED_JOBSETS = 4096
"""Most remembered JobSets with waiting pods; the least recently used is dropped, and reconciled with its JobSet."""


def active_jobsets(jobset: CachedObject) -> tuple[str, ...]:
    """Index function of `ACTIVE`."""
    counts = (jobset.get("status") or {}).get("replicatedJobsStatus") or []
    return (str(jobset.key),) if any(count.get("active") for count in counts) else ()


class WaitingJobSets:
    """Remembers JobSets with waiting pods, in memory only; a manager that starts reconciles all of them."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._waiting: BoundedDict[ObjectKey, None] = BoundedDict(REMEMBERED_JOBSETS)

    def note(self, jobset: ObjectKey, *, waits: bool) -> None:
        """Remember whether pods of a JobSet wait."""
        if waits:
            self._waiting[jobset] = None
        else:
            self._waiting.pop(jobset, None)

    def is_due(self, old: CachedObject | None, new: CachedObject | None) -> bool:
        """Predicate: a pod of a waiting JobSet has changed, or a late pod has no scheduler yet.

        A pod that comes before its JobSet has active ones is reconciled with the change of the JobSet.
        """
        pod = new or old
        jobset = pod.labels.get(JOBSET_NAME) if pod is not None else None
        if pod is None or jobset is None:
            return False
        key = ObjectKey(pod.key.namespace, jobset)
        if key in self._waiting:
            return old is None or new is None or problems_of(old) != problems_of(new)
        return old is None and new is not None and bool(self._reader.keys(JOBSETS, ACTIVE, str(key))) and is_unseen(new)
