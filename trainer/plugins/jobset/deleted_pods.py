"""What is remembered of pods that failed or were deleted: JobSet and Job delete them soon, and others with them.

It is kept in memory: a manager that starts anew knows what objects tell, by times with a resolution of a second, and
what the condition Stopping says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainer.api.jobset_labels import JOBSET_NAME, JOBSET_UID
from trainer.api.jobset_pods import age_of, place_of
from trainer.api.metadata import Condition
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.framework import FailedContainer, Reader, first_failure
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import (
    Object,
    ObjectKey,
    find_condition,
    is_being_deleted,
    mapping_at,
    metadata_of,
    name_of,
    namespace_of,
    objects_in,
    uid_of,
)
from trainer.kube.resource import JOBS
from trainer.plugins.jobset.gang import disruption_of_gang
from trainer.plugins.jobset.pod_index import PodIndex, is_in_trouble, is_there, lasting, life_of, problems_of
from trainer.workloads.disruption import deletion_of
from trainer.workloads.pod_life import PodState

REMEMBERED = 512
"""Most JobSets with a remembered pod, a few KiB each; the least recently used is dropped first."""

_Owner = tuple[str, str, str]
"""Namespace, name and uid of a JobSet, from labels of its pods."""


@dataclass(frozen=True, slots=True)
class _Deleted:
    restart_attempt: int
    pod: Object


@dataclass(frozen=True, slots=True)
class _First:
    """The first pod of an attempt that got into trouble, in the order of the events of the watch."""

    restart_attempt: int
    since: str
    deleted: str
    """Its uid if it was deleted, by whom its object does not tell; else empty."""


class DeletedPods:
    """Remembers the pod that failed first in the latest attempt of each JobSet, and the one that was deleted first.

    A Job deletes its pods once one has failed, so a pod that is deleted while none has was deleted by somebody else:
    not where the Job is gone, with which its pods go, or has a deadline of its own.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._gone: BoundedDict[_Owner, _Deleted] = BoundedDict(REMEMBERED)
        self._first: BoundedDict[_Owner, _First] = BoundedDict(REMEMBERED)

    def problem_changed(self, old: CachedObject | None, new: CachedObject | None) -> bool:
        """Predicate: a pod got or lost a problem, or is gone without having ended."""
        of_old, of_new = (() if pod is None else problems_of(pod) for pod in (old, new))
        before, after = lasting(of_old), lasting(of_new)
        if is_in_trouble(after) and not is_in_trouble(before) and new is not None:
            self._note(new, is_known=old is not None)
        if new is None and old is not None and is_in_trouble(before):
            self._remember(old.decode(), _owner(old))
        has_vanished = new is None and is_there(of_old)
        return before != after or has_vanished

    def first_failure(self, index: PodIndex, train_job: TrainJob, *, attempt: int) -> FailedContainer | None:
        """The pod of a JobSet that failed or was taken away first in an attempt; None if nothing is known of it."""
        jobset = index.jobset
        owners = [(namespace_of(jobset), name_of(jobset), uid) for uid in (uid_of(jobset), "")]
        present = [*index.failed(), *index.going()]
        gone = [each.pod for owner in owners if (each := self._gone.get(owner)) and each.restart_attempt == attempt]
        newest = max((str(metadata_of(pod).get("creationTimestamp") or "") for pod in present), default="")
        gone = [pod for pod in gone if (deletion_of(pod) or newest) >= newest]
        firsts = (self._first.get(owner) for owner in owners)
        deleted = next((each.deleted for each in firsts if each and each.restart_attempt == attempt), "")
        if any(job.get("activeDeadlineSeconds") is not None for job in _jobs_of(jobset)):
            deleted = ""
        found = first_failure(of_size([*present, *gone], jobset), deleted_first=deleted)
        is_known = found is not None and (found.disruption is not None or not found.is_taken_away)
        if is_known:
            return found
        stop = stop_of(train_job)
        if stop is not None and stop.last_transition_time >= newest:  # else it is of an earlier attempt
            _, _, said = said_by(stop, ConditionReason.STOPPING_PODS).partition(": ")
            found = FailedContainer.recalled(said) or found
        if found is not None and found.disruption is not None:
            return found
        gang = disruption_of_gang(index)
        is_of_attempt = gang is not None and gang.since >= newest and gang.since > _last_restart(train_job, jobset)
        return gang if is_of_attempt else found

    def _note(self, pod: CachedObject, *, is_known: bool) -> None:
        """Keep the first sign of trouble; one of pods that were made after it begins anew, as after a suspension."""
        owner, age = _owner(pod), age_of(pod.decode())
        present = self._first.get(owner)
        if present and age.restart_attempt <= present.restart_attempt and age.creation_timestamp <= present.since:
            return
        life = life_of(pod)
        is_deleted = is_known and life.state is PodState.TERMINATING and self._has_job(pod)
        self._first[owner] = _First(age.restart_attempt, life.since, pod.meta.uid if is_deleted else "")

    def _has_job(self, pod: CachedObject) -> bool:
        owner = pod.controller
        job = self._reader.get(JOBS, ObjectKey(pod.key.namespace, owner.name)) if owner is not None else None
        return owner is not None and job is not None and uid_of(job) == owner.uid and not is_being_deleted(job)

    def _remember(self, pod: Object, owner: _Owner) -> None:
        gone, present = _Deleted(age_of(pod).restart_attempt, pod), self._gone.get(owner)
        if present is not None and present.restart_attempt >= gone.restart_attempt:
            is_earlier = present.restart_attempt == gone.restart_attempt and self._is_first(pod, present.pod, owner)
            gone = gone if is_earlier else present
        self._gone[owner] = gone

    def _is_first(self, pod: Object, other: Object, owner: _Owner) -> bool:
        """Whether a pod failed before another one, which is gone, or was made after it."""
        if "" < deletion_of(other) < str(metadata_of(pod).get("creationTimestamp") or ""):
            return True
        first = self._first.get(owner)
        failure = first_failure([pod, other], deleted_first=first.deleted if first is not None else "")
        return failure is not None and failure.pod == name_of(pod)


def _jobs_of(jobset: Object) -> Iterator[Object]:
    """The specs of its replicated Jobs."""
    for job in (jobset.get("spec") or {}).get("replicatedJobs") or []:
        yield (job.get("template") or {}).get("spec") or {}


def _owner(pod: CachedObject) -> _Owner:
    return pod.key.namespace, pod.labels[JOBSET_NAME], pod.labels.get(JOBSET_UID, "")


def of_size(pods: Iterable[Object], jobset: Object) -> list[Object]:
    """Without those that an elastic JobSet has given up."""
    jobs = objects_in(mapping_at(jobset, "spec").get("replicatedJobs"))
    sizes = {job.get("name"): mapping_at(job, "template", "spec").get("completions") or math.inf for job in jobs}
    places = ((pod, place_of(pod)) for pod in pods)
    return [pod for pod, place in places if place.completion_index < sizes.get(place.replicated_job, math.inf)]


def stop_of(train_job: TrainJob) -> Condition | None:
    """The condition Stopping of a TrainJob if it holds."""
    conditions = (train_job.status and train_job.status.conditions) or ()
    held = (each for each in conditions if each.type == ConditionType.STOPPING and each.status == "True")
    return next(held, None)


def _last_restart(train_job: TrainJob, jobset: Object) -> str:
    """When a restart has begun or ended, as the conditions say: what was before is of an earlier attempt.

    A manager that was away during a restart has not written its own condition; JobSet's ends with it.
    """
    conditions = (train_job.status and train_job.status.conditions) or ()
    restarts = [each.last_transition_time for each in conditions if each.type == ConditionType.RESTARTING]
    of_jobset = find_condition(jobset, "RestartingJobSet") or {}
    if of_jobset.get("status") == "False":
        restarts.append(str(of_jobset.get("lastTransitionTime") or ""))
    return max(restarts, default="")


def said_by(stop: Condition | None, reason: ConditionReason) -> str:
    """What the condition says for this reason, such as beside a lost node; empty if nothing."""
    lines = [] if stop is None else f"{stop.reason}: {stop.message}".splitlines()
    beginning = f"{reason}: "
    return next((line for line in lines if line.startswith(beginning)), "").removeprefix(beginning)
