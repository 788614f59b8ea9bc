"""The pods of a JobSet with a problem, as an index of the pod cache.

A job may have thousands of pods, and nearly all of their changes say nothing new about it. So each pod is classified
once for each change, by its life alone; a reconcile asks the index and decodes single pods as examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import msgspec

from trainer.api.jobset_labels import JOBSET_NAME, JOBSET_UID, REPLICATED_JOB
from trainer.api.jobset_pods import is_made_by
from trainer.framework import Reader
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object, ObjectKey, name_of, namespace_of, uid_of
from trainer.kube.resource import JOBS, PODS
from trainer.workloads import JOBSETS
from trainer.workloads.pod_life import CRASHING, PREPARING, UNSEEN, PodLife, PodState, pod_life
from trainer.workloads.scheduling_groups import is_of_gang

POD_PROBLEMS = "jobset-pod-problems"
"""Name of the index."""

_STARTS = " is starting"
"""Contains a space, which no name of a replicated Job has."""
_UNSEEN = " is unseen"
_FAILED = " failed"
_LOST = " lost"
_GOING = " is going"
_FOR_GANG = " waits for the gang"
"""Of a pod with nothing wrong with it, whose gang does not fit; no reason has a space."""
_THERE = " is there"
_USUAL = (_STARTS, _UNSEEN, _THERE)
"""Of pods that are on their way to their first start, or run."""


class _ContainerSpec(TypedDict, total=False):
    name: str | None
    restartPolicy: str | None
    restartPolicyRules: list[Any] | None


class _Spec(TypedDict, total=False):
    nodeName: str | None
    restartPolicy: str | None
    containers: list[_ContainerSpec] | None
    initContainers: list[_ContainerSpec] | None


class _Metadata(TypedDict, total=False):
    name: str | None
    uid: str | None
    deletionTimestamp: str | None
    deletionGracePeriodSeconds: int | None


class _Pod(TypedDict, total=False):
    """What `pod_life` reads of a pod, which is the smaller part of it."""

    metadata: _Metadata
    spec: _Spec | None
    status: dict[str, Any] | None


class _Condition(msgspec.Struct, gc=False):
    status: str = ""


class _Present(msgspec.Struct, gc=False):
    """What of a state is not read."""


class _State(msgspec.Struct, gc=False):
    running: _Present | None = None
    waiting: _Present | None = None


class _Container(msgspec.Struct, gc=False):
    state: _State | None = None


class _Status(msgspec.Struct, gc=False, rename="camel"):
    phase: str | None = None
    conditions: tuple[_Condition, ...] | None = None
    init_container_statuses: tuple[_Container, ...] | None = None
    container_statuses: tuple[_Container, ...] | None = None


class _Glance(msgspec.Struct, gc=False):
    """Enough of a pod to see that it runs, and that nothing has happened to it."""

    status: _Status | None = None


_pod = msgspec.json.Decoder(_Pod)
_glance = msgspec.json.Decoder(_Glance)


def life_of(pod: CachedObject) -> PodLife:
    """What happens to a cached pod."""
    return pod_life(_pod.decode(pod.raw))


def lasting(problems: Sequence[str]) -> list[str]:
    """Those of a pod that is more than on its way to its node and its first start."""
    return [problem for problem in problems if not problem.endswith(_USUAL)]


def problems_of(pod: CachedObject) -> tuple[str, ...]:
    """Index function of `POD_PROBLEMS`; `PodIndex` has the queries.

    A pod that only its labels call one of a JobSet has no problem to report.
    """
    found = _problems(pod)
    job = pod.controller if found else None
    return found if job is not None and is_made_by(job.kind, job.name, pod.labels) else ()


def is_in_trouble(problems: Sequence[str]) -> bool:
    """Whether a pod with these problems has failed, or was deleted and is still there."""
    return any(problem.endswith((_FAILED, _GOING)) for problem in problems[:1])


def is_there(problems: Sequence[str]) -> bool:
    """Whether a pod with these problems has not ended."""
    return any(problem.endswith(_THERE) for problem in problems)


def is_unseen(pod: CachedObject) -> bool:
    """Whether a pod of a JobSet has no node and no reason from a scheduler."""
    return any(problem.endswith(_UNSEEN) for problem in problems_of(pod))


def _problems(pod: CachedObject) -> tuple[str, ...]:
    labels = pod.labels
    owner = _owner(pod.key.namespace, labels.get(JOBSET_NAME, ""), labels.get(JOBSET_UID, ""))
    if _runs(pod):
        return (f"{owner}{_THERE}",)
    life = life_of(pod)
    if life.has_ended:
        if life.state is PodState.SUCCEEDED:
            return ()
        is_leaving = pod.meta.deletion_timestamp is not None
        return (f"{owner}{_FAILED}", *(() if is_leaving else (f"{owner} failed in {labels.get(REPLICATED_JOB, '')}",)))
    return (*(f"{owner}{problem}" for problem in _unfinished(life)), f"{owner}{_THERE}")


def _runs(pod: CachedObject) -> bool:
    """Whether a pod runs and nothing has happened to it, as nearly always, which a glance at it tells."""
    if pod.meta.deletion_timestamp is not None:
        return False
    status = _glance.decode(pod.raw).status
    if status is None or status.phase != "Running" or not status.container_statuses:
        return False
    for condition in status.conditions or ():
        if condition.status == "False":
            return False
    for each in status.init_container_statuses or ():
        if each.state is not None and each.state.waiting is not None:
            return False
    return all(each.state is not None and each.state.running is not None for each in status.container_statuses)


def _unfinished(life: PodLife) -> tuple[str, ...]:
    lost = (_LOST,) if life.node_lost_since else ()
    if life.is_going:
        return (_GOING, *lost)
    if lost:
        return lost
    if life.held_by:
        return (" held",)
    if life.state is PodState.WAITING:
        if life.reason == CRASHING:
            return (" crashing",)
        for_gang = (_FOR_GANG,) if is_of_gang(life.message) else ()
        return (" waits", f" waits for {life.reason}", *for_gang)
    if life.reason in {UNSEEN, PREPARING}:
        return (_STARTS, _UNSEEN) if life.reason == UNSEEN else (_STARTS,)
    return ()


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

    def waiting_for_gang(self) -> set[ObjectKey]:
        """Pods of a gang that does not fit, of which the scheduler says nothing else."""
        return self._keys(_FOR_GANG.strip())

    def starting(self) -> set[ObjectKey]:
        """Pods with a node whose containers have not been created, without a reason in their status."""
        return self._keys(_STARTS.strip())

    def unseen(self) -> set[ObjectKey]:
        """Pods without a node and without a reason from a scheduler."""
        return self._keys(_UNSEEN.strip())

    def held(self) -> set[ObjectKey]:
        """Pods whose training has ended, and which another container keeps."""
        return self._keys("held")

    def there(self) -> set[ObjectKey]:
        """All pods that have not ended."""
        return self._keys(_THERE.strip())

    def going(self) -> list[Object]:
        """Deleted pods that are still there."""
        return self._pods(_GOING)

    def lost(self) -> set[ObjectKey]:
        """Pods whose nodes are lost, whether they are being deleted or not."""
        return self._keys(_LOST.strip())

    def crashing(self) -> set[ObjectKey]:
        """Pods with a container that fails repeatedly."""
        return self._keys("crashing")

    def failed(self) -> list[Object]:
        """Failed pods, whether they are being deleted or not."""
        return self._pods(_FAILED)

    def failed_in(self, replicated_job: str) -> set[ObjectKey]:
        """Failed pods of a replicated Job that are not being deleted."""
        return self._keys(f"failed in {replicated_job}")

    def job(self, key: ObjectKey) -> Object | None:
        """The metadata of a Job."""
        return self.reader.get(JOBS, key)

    def _pods(self, problem: str) -> list[Object]:
        found = [self.reader.get(PODS, key) for key in self._keys(problem.strip())]
        return [pod for pod in found if pod is not None]

    def _keys(self, problem: str) -> set[ObjectKey]:
        return {
            *self.reader.keys(PODS, POD_PROBLEMS, f"{self._with_uid} {problem}"),
            *self.reader.keys(PODS, POD_PROBLEMS, f"{self._without_uid} {problem}"),
        }


def _owner(namespace: str, name: str, uid: str) -> str:
    """The index value with the namespace of the pod, since pods of any namespace may have a uid as a label."""
    return f"{namespace}/{name}/{uid}"


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
