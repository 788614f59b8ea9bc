"""Problems of a JobSet's pods: they cannot be created, scheduled or started, or are restarted after a failure."""

from __future__ import annotations

import heapq
import re
from functools import partial
from typing import TYPE_CHECKING

from trainer.api.jobset_labels import REPLICATED_JOB
from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.framework import PodProblem, first_failure, last_crash
from trainer.kube.cache.store import CONTROLLER_UID
from trainer.kube.objects import ObjectKey, find_condition, key_of, labels_of, metadata_of, namespace_of, uid_of
from trainer.kube.resource import JOBS, PERSISTENT_VOLUME_CLAIMS, PODS
from trainer.plugins.jobset.complaints import (
    REASONS,
    complained_of,
    ephemeral_volumes,
    has_complaints,
    latest_complaint,
    shared_claims,
)
from trainer.plugins.jobset.pod_troubles import wait_of
from trainer.plugins.jobset.revision import is_decided
from trainer.plugins.jobset.wait import Named, Waiting, about, cannot_start
from trainer.workloads import JOBSETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from trainer.api.trainjob import TrainJob
    from trainer.framework import Reader
    from trainer.kube.objects import Object
    from trainer.plugins.jobset.complaints import Complaint
    from trainer.plugins.jobset.pod_troubles import GonePods, Troubles

_MAY_PASS = frozenset({"Unschedulable", "SchedulingGated", ConditionReason.NO_SCHEDULER})
"""Reasons that often end by themselves, sorted after the others."""

_NAMES_CLAIMS = re.compile("persistent ?volume ?claim", re.IGNORECASE)

_KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
"""Kueue's label of a queued JobSet, which it keeps suspended until admission."""

_DEFAULT_BACKOFF_LIMIT = 6
"""Default of a Job (Kubernetes documentation, "Jobs")."""


def suspended_by_others(jobset: Object) -> Iterator[PodProblem]:
    """The problem of a JobSet that another manager has suspended and has to resume."""
    if is_decided(jobset, suspend=False):  # the TrainJob has just been resumed
        return
    queue = labels_of(jobset).get(_KUEUE_QUEUE)
    headline = (
        "the JobSet is suspended, but not by the TrainJob" if queue is None else f"waits in Kueue's queue {queue}"
    )
    details = "whoever suspended it resumes it, or suspend and resume the TrainJob" if queue is None else ""
    yield PodProblem(ConditionType.PENDING, ConditionReason.JOB_SET_SUSPENDED, headline, lambda: details)


def waits(troubles: Troubles, train_job: TrainJob) -> list[PodProblem]:
    """One problem for each reason for which pods do not start."""
    found: dict[str, Waiting] = {}
    own, without_claims = _waits_of_pods(troubles)
    for waiting in (*own, *refusals(troubles), *_without_sandbox(troubles), *unscheduled(troubles, without_claims)):
        found.setdefault(waiting.reason, waiting)
    present = sorted(found.values(), key=lambda each: (each.reason in _MAY_PASS, each.reason))
    return [waiting.problem(train_job, troubles.jobset) for waiting in present]


def _waits_of_pods(troubles: Troubles) -> tuple[list[Waiting], set[ObjectKey]]:
    """Problems from the statuses of pods, and pods that wait for a volume claim."""
    found: dict[str, Waiting] = {}
    without_claims: set[ObjectKey] = set()
    remaining = troubles.waiting()
    while remaining:
        example = min(remaining)
        pod = troubles.reader.get(PODS, example)
        wait = wait_of(pod) if pod is not None else None
        if pod is None or wait is None or wait.reason in found:
            remaining.discard(example)
            continue
        alike = troubles.waiting(wait.reason) | {example}
        remaining -= alike
        found[wait.reason] = cannot_start(wait.reason, alike, pod, wait.message)
        if _NAMES_CLAIMS.search(wait.message):
            without_claims |= alike
    return list(found.values()), without_claims


def _without_sandbox(troubles: Troubles) -> Iterator[Waiting]:
    """Pods that wait for a volume or their network, by events; pods are identified by their unique names."""
    starting = troubles.starting()
    for reason in REASONS[PODS.kind]:
        blocked = complained_of(troubles.reader, PODS, starting, reason)
        for example in sorted(blocked):
            pod = troubles.reader.get(PODS, example)
            uid = uid_of(pod) if pod is not None else ""
            complaint = latest_complaint(troubles.reader, PODS, example, uid=uid, reason=reason)
            if pod is not None and complaint is not None:
                yield cannot_start(reason, blocked, pod, complaint.message)
                break
            blocked.discard(example)


def restarts(troubles: Troubles, gone: GonePods) -> Iterator[PodProblem]:
    """The restart of the whole JobSet, else that of single pods."""
    if _is_restarting(troubles.jobset):
        yield PodProblem(
            ConditionType.RESTARTING,
            ConditionReason.RESTARTING_JOB_SET,
            _restart(troubles.jobset),
            partial(_cause, troubles, gone),
        )
        return
    remade = {key for job in _remaking(troubles.jobset) for key in troubles.failed_in(job)}
    crashing = troubles.crashing()
    if remade or crashing:
        headline = f"{about(len(remade | crashing))} failed and started again"
        details = partial(_example, troubles.reader, remade, crashing)
        yield PodProblem(ConditionType.RESTARTING, ConditionReason.RESTARTING_PODS, headline, details)


def _is_restarting(jobset: Object) -> bool:
    status = jobset.get("status") or {}
    condition = find_condition(jobset, "RestartingJobSet")
    if condition is not None:
        return bool(condition.get("status") == "True")
    # JobSet before 0.12 does not say, so this is as near as its counts come.
    counts = status.get("replicatedJobsStatus") or []
    return bool(status.get("restarts")) and not any(count.get("ready") or count.get("succeeded") for count in counts)


def _restart(jobset: Object) -> str:
    number = (jobset.get("status") or {}).get("restarts") or 1
    limit = ((jobset.get("spec") or {}).get("failurePolicy") or {}).get("maxRestarts")
    return f"restart {number}" if limit is None else f"restart {number} (maxRestarts is {limit})"


def _cause(troubles: Troubles, gone: GonePods) -> str:
    """What failed first; pods of the last attempt may still exist, or are remembered."""
    culprit = first_failure([*troubles.failed(), *gone.before(troubles.jobset)])
    if culprit is not None:
        return culprit.text
    condition = find_condition(troubles.jobset, "RestartingJobSet") or {}
    return condition.get("message") or ""


def _remaking(jobset: Object) -> Iterator[str]:
    """Replicated Jobs that are not ready and whose Jobs replace failed pods."""
    counts = {count["name"]: count for count in (jobset.get("status") or {}).get("replicatedJobsStatus") or []}
    for job in (jobset.get("spec") or {}).get("replicatedJobs") or []:
        count = counts.get(job["name"]) or {}
        well = sum(count.get(name) or 0 for name in ("ready", "succeeded", "failed"))
        limit = ((job.get("template") or {}).get("spec") or {}).get("backoffLimit", _DEFAULT_BACKOFF_LIMIT)
        if well < job.get("replicas", 1) and limit:
            yield job["name"]


def _example(reader: Reader, remade: set[ObjectKey], crashing: set[ObjectKey]) -> str:
    pods = [pod for key in sorted(remade | crashing) if (pod := reader.get(PODS, key)) is not None]
    culprit = first_failure(pods)
    if culprit is not None:
        return culprit.text
    return next((crash for pod in pods if (crash := last_crash(pod))), "")


def refusals(troubles: Troubles) -> Iterator[Waiting]:
    """The Jobs that JobSet cannot create, and the pods that Jobs cannot create."""
    yield from _refused_jobs(troubles)
    yield from _refused_pods(troubles)


def _refused_jobs(troubles: Troubles) -> Iterator[Waiting]:
    reader, jobset = troubles.reader, troubles.jobset
    if not has_complaints(reader, JOBSETS, key_of(jobset)):
        return
    jobs = reader.keys(JOBS, CONTROLLER_UID, uid_of(jobset))
    wanted = sum(job.get("replicas", 1) for job in (jobset.get("spec") or {}).get("replicatedJobs") or [])
    complaint = latest_complaint(reader, JOBSETS, key_of(jobset), uid=uid_of(jobset))
    if complaint is None or len(jobs) >= wanted or _is_outdated(complaint, map(troubles.job, jobs)):
        return
    yield Waiting(complaint.reason, "Jobs cannot be created", f"JobSet {key_of(jobset).name}", complaint.message)


def _refused_pods(troubles: Troubles) -> Iterator[Waiting]:
    """One problem for each reason, since the Jobs of a JobSet usually share theirs."""
    missing: dict[str, int] = {}
    examples: dict[str, tuple[Object, Complaint]] = {}
    sizes = _unsettled(troubles.jobset)
    jobs = troubles.reader.keys(JOBS, CONTROLLER_UID, uid_of(troubles.jobset)) if sizes else ()
    for key in sorted(complained_of(troubles.reader, JOBS, jobs)):
        found = _refused_by(troubles, key, sizes)
        if found is not None:
            job, complaint, count = found
            missing[complaint.reason] = missing.get(complaint.reason, 0) + count
            examples.setdefault(complaint.reason, (job, complaint))
    for reason, (job, complaint) in examples.items():
        replicated_job = labels_of(job).get(REPLICATED_JOB, "")
        headline = f"{about(missing[reason])} cannot be created"
        yield Waiting(reason, headline, f"Job {key_of(job).name}", complaint.message, replicated_job)


def _refused_by(troubles: Troubles, key: ObjectKey, sizes: Mapping[str, int]) -> tuple[Object, Complaint, int] | None:
    """A Job that lacks pods, the event with the reason, and the number of missing pods; None without an event."""
    reader = troubles.reader
    job = troubles.job(key)
    if job is None:
        return None
    name = labels_of(job).get(REPLICATED_JOB, "")
    made = reader.keys(PODS, CONTROLLER_UID, uid_of(job))
    failed = made & troubles.failed_in(name)
    lacking = sizes.get(name, 0) - len(made - failed)
    complaint = latest_complaint(reader, JOBS, key, uid=uid_of(job)) if lacking > 0 else None
    if complaint is None or _is_outdated(complaint, (reader.get(PODS, pod) for pod in failed)):
        return None
    return job, complaint, lacking


def _unsettled(jobset: Object) -> dict[str, int]:
    """Pods of each Job in the replicated Jobs with a Job that is neither ready nor ended."""
    counts = {count["name"]: count for count in (jobset.get("status") or {}).get("replicatedJobsStatus") or []}
    sizes = {}
    for job in (jobset.get("spec") or {}).get("replicatedJobs") or []:
        count = counts.get(job["name"]) or {}
        if sum(count.get(name) or 0 for name in ("ready", "succeeded", "failed")) < job.get("replicas", 1):
            spec = (job.get("template") or {}).get("spec") or {}
            parallelism = spec.get("parallelism", 1)
            sizes[job["name"]] = min(parallelism, spec.get("completions", parallelism))
    return sizes


def _is_outdated(complaint: Complaint, made: Iterable[Object | None]) -> bool:
    """Whether an object was created after the last event that it could not be.

    Both times are whole seconds. Within the same one the complaint loses: who still fails complains again soon, and one
    that is out of date would stay for the life of the event.
    """
    times = [str(metadata_of(obj).get("creationTimestamp") or "").rstrip("Z") for obj in made if obj is not None]
    return bool(times) and max(times) >= complaint.seen


_DEBOUNCE = 30
"""Seconds before it is reported: a scheduler with a long queue and a new volume take some."""

_EXAMPLES = 8
"""Most pods whose own claims are read: a JobSet may have thousands of pods with a hundred volumes each."""


def unscheduled(troubles: Troubles, without_claims: AbstractSet[ObjectKey]) -> Iterator[Waiting]:
    """Claims that are not bound, and pods without a reaction of a scheduler.

    Args:
        troubles: of the JobSet.
        without_claims: pods whose scheduler says that it waits for a claim, but not for what the claim waits.
    """
    unseen = troubles.unseen()
    if not unseen and not without_claims:
        return
    claims = _unbound_claims(troubles, unseen | without_claims)
    yield from claims.values()
    # A scheduler that has found a node for a pod is silent while it waits for claims, or for the rest of a gang.
    if unseen and not claims and not troubles.waiting():
        yield from _unseen(troubles, unseen)


def _unseen(troubles: Troubles, unseen: AbstractSet[ObjectKey]) -> Iterator[Waiting]:
    example = min(unseen)
    pod = troubles.reader.get(PODS, example)
    if pod is None:
        return
    scheduler = (pod.get("spec") or {}).get("schedulerName") or "default-scheduler"
    message = f"no scheduler called {scheduler} has looked at it; is one installed under this name, and does it run?"
    missing = Named("scheduler", scheduler)
    yield cannot_start(ConditionReason.NO_SCHEDULER, unseen, pod, message, missing=missing, debounce=_DEBOUNCE)


def _unbound_claims(troubles: Troubles, pods: AbstractSet[ObjectKey]) -> dict[str, Waiting]:
    """By reason, the first claim with an event that it cannot be bound.

    Claims are known by their names, for the manager may not read them.
    """
    found: dict[str, Waiting] = {}
    for claim, complaint in _complaints(troubles, pods):
        debounce = 0 if complaint.is_warning else _DEBOUNCE
        missing = Named("persistentvolumeclaim", claim)
        waiting = Waiting(
            complaint.reason, "a volume claim is not bound", f"claim {claim}", complaint.message, missing=missing,
            debounce=debounce,
        )  # fmt: skip
        found.setdefault(complaint.reason, waiting)
    return found


def _complaints(troubles: Troubles, pods: AbstractSet[ObjectKey]) -> Iterator[tuple[str, Complaint]]:
    jobset, reader = troubles.jobset, troubles.reader
    examples = heapq.nsmallest(_EXAMPLES, pods)
    own = [f"{pod.name}-{volume}" for volume in ephemeral_volumes(jobset) for pod in examples]
    for claim in sorted({*shared_claims(jobset), *own}):
        key = ObjectKey(namespace_of(jobset), claim)
        complaint = latest_complaint(reader, PERSISTENT_VOLUME_CLAIMS, key)
        if complaint is not None:
            yield claim, complaint
