"""Problems of a JobSet's pods: they cannot be created, scheduled or started, or are restarted after a failure."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial

from trainer.api.jobset_labels import REPLICATED_JOB
from trainer.api.kueue import QUEUE_LABEL
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionReason, ConditionType, RestartCounts
from trainer.framework import PodProblem, Reader, first_failure, last_crash
from trainer.kube.cache.store import CONTROLLER_UID
from trainer.kube.objects import (
    Object,
    ObjectKey,
    controller_of,
    find_condition,
    has_finished,
    key_of,
    labels_of,
    mapping_at,
    metadata_of,
    name_of,
    namespace_of,
    objects_in,
    uid_of,
)
from trainer.kube.resource import JOBS, PERSISTENT_VOLUME_CLAIMS, PODS
from trainer.plugins.jobset.deleted_pods import DeletedPods
from trainer.plugins.jobset.events import (
    REASONS,
    ProblemEvent,
    ephemeral_volumes,
    has_events,
    latest_event,
    shared_claims,
    with_events,
)
from trainer.plugins.jobset.gang import Gang
from trainer.plugins.jobset.pod_index import PodIndex
from trainer.plugins.jobset.revision import is_decided
from trainer.plugins.jobset.wait import Example, Named, WaitReason, about, cannot_start
from trainer.workloads import DEFAULT_SCHEDULER, JOBSETS
from trainer.workloads.pod_life import pod_life, wait_of
from trainer.workloads.restarts import Restarts, restart_attempt

_MAY_PASS = frozenset(
    {
        "Unschedulable",
        "SchedulingGated",
        ConditionReason.NO_SCHEDULER,
        ConditionReason.NO_POD_GROUP,
        ConditionReason.GANG_INCOMPLETE,
    }
)
"""Reasons that often end by themselves, sorted after the others."""

_NAMES_CLAIMS = re.compile("persistent ?volume ?claim", re.IGNORECASE)

_HELD_DEBOUNCE = 10
"""Seconds before a pod that is kept is reported: a proxy that has a way to end takes a moment."""

_DEFAULT_BACKOFF_LIMIT = 6
"""Default of a Job (Kubernetes documentation, "Jobs")."""


def suspended_by_others(jobset: Object) -> Iterator[PodProblem]:
    """The problem of a JobSet that another manager has suspended and has to resume."""
    if is_decided(jobset, suspend=False):  # the TrainJob has just been resumed
        return
    queue = labels_of(jobset).get(QUEUE_LABEL)
    headline = (
        "the JobSet is suspended, but not by the TrainJob" if queue is None else f"waits in Kueue's queue {queue}"
    )
    details = "whoever suspended it resumes it, or suspend and resume the TrainJob" if queue is None else ""
    yield PodProblem(ConditionType.PENDING, ConditionReason.JOB_SET_SUSPENDED, headline, lambda: details)


def waits(index: PodIndex, train_job: TrainJob) -> list[PodProblem]:
    """One problem for each reason for which pods do not start."""
    found: dict[str, WaitReason] = {}
    own, without_claims = _waits_of_pods(index)
    refused = (*_refused_jobs(index), *_refused_pods(index))
    for waiting in (*own, *refused, *_without_sandbox(index), *unscheduled(index, without_claims), *_held(index)):
        found.setdefault(waiting.reason, waiting)
    present = sorted(found.values(), key=lambda each: (each.reason in _MAY_PASS, each.reason))
    return [waiting.problem(train_job, index.jobset) for waiting in present]


def _waits_of_pods(index: PodIndex) -> tuple[list[WaitReason], set[ObjectKey]]:
    """Problems from the statuses of pods, and pods that wait for a volume claim."""
    found: dict[str, WaitReason] = {}
    without_claims: set[ObjectKey] = set()
    remaining = index.waiting()
    gang = Gang.of(index) if remaining else None
    while remaining:
        example = min(remaining)
        pod = index.reader.get(PODS, example)
        wait = wait_of(pod) if pod is not None else None
        if pod is None or wait is None or wait.reason in found:
            remaining.discard(example)
            continue
        alike = index.waiting(wait.reason) | {example}
        remaining -= alike
        whole = gang.without_room(index, alike) if gang is not None and not wait.container else None
        found[wait.reason] = whole or cannot_start(wait.reason, alike, pod, wait.message)
        if _NAMES_CLAIMS.search(wait.message):
            without_claims |= alike
    return list(found.values()), without_claims


def _without_sandbox(index: PodIndex) -> Iterator[WaitReason]:
    """Pods that wait for a volume or their network, by events; pods are identified by their unique names."""
    starting = index.starting()
    for reason in REASONS[PODS.kind]:
        blocked = with_events(index.reader, PODS, starting, reason)
        for example in sorted(blocked):
            pod = index.reader.get(PODS, example)
            uid = uid_of(pod) if pod is not None else ""
            event = latest_event(index.reader, PODS, example, uid=uid, reason=reason)
            if pod is not None and event is not None:
                yield cannot_start(reason, blocked, pod, event.message)
                break
            blocked.discard(example)


def _held(index: PodIndex) -> Iterator[WaitReason]:
    """Pods whose training has ended, and which another container keeps, where no pod of their Job trains any more."""
    held = index.held()
    for example in sorted(held):
        pod = index.reader.get(PODS, example)
        job = (controller_of(pod) or {}).get("uid") if pod is not None else None
        if pod is None or job is None:
            continue
        alike = index.reader.keys(PODS, CONTROLLER_UID, str(job))
        others = (index.reader.get(PODS, key) for key in alike - held)
        if all(other is None or has_finished(other) for other in others):
            life, kept = pod_life(pod), alike & held
            holders = ", ".join(life.held_by)
            verb, them = "keeps" if len(life.held_by) == 1 else "keep", "it" if len(kept) == 1 else "them"
            yield WaitReason(
                ConditionReason.ENDED_AND_HELD,
                f"{_ended(len(kept))}, and {holders} {verb} {them}",
                Example(PODS.kind, life.pod, is_one_of_many=len(kept) > 1),
                f"container {life.container} has ended with {life.exit_code}, and {holders} still runs",
                debounce=_HELD_DEBOUNCE,
            )
            return


def restarts(index: PodIndex, gone: DeletedPods, train_job: TrainJob) -> Iterator[PodProblem]:
    """The restart of the whole JobSet, else that of single pods."""
    if is_restarting(index.jobset):
        yield PodProblem(
            ConditionType.RESTARTING,
            ConditionReason.RESTARTING_JOB_SET,
            _restart(index.jobset),
            partial(_cause, index, gone, train_job),
        )
        return
    replacing = [name for name, job in _unsettled(index.jobset) if _makes_pods_again(job)]
    remade = {key for name in replacing for key in index.failed_in(name)}
    crashing = index.crashing()
    if remade or crashing:
        headline = f"{_ended(len(remade | crashing))} and started again"
        details = partial(_example, index.reader, remade, crashing)
        yield PodProblem(ConditionType.RESTARTING, ConditionReason.RESTARTING_PODS, headline, details)


def _ended(count: int) -> str:
    return f"{about(count)} {'has' if count == 1 else 'have'} ended"


def _makes_pods_again(job: Object) -> bool:
    """Whether a Job makes pods again after a failure, or those of which its policy says that they do not count."""
    rules = objects_in(mapping_at(job, "podFailurePolicy").get("rules"))
    return bool(job.get("backoffLimit", _DEFAULT_BACKOFF_LIMIT)) or any(
        rule.get("action") == "Ignore" for rule in rules
    )


def is_restarting(jobset: Object) -> bool:
    """Whether the failure policy of a JobSet has deleted its Jobs, and no new ones are ready."""
    condition = find_condition(jobset, "RestartingJobSet")
    if condition is not None:
        return bool(condition.get("status") == "True")
    # JobSet before 0.12 does not say, so this is as near as its counts come.
    return restart_attempt(jobset) > 0 and not is_ready(jobset)


def is_ready(jobset: Object) -> bool:
    """Whether a Job of the JobSet has all its pods, or has succeeded."""
    counts = mapping_at(jobset, "status").get("replicatedJobsStatus") or []
    return any(count.get("ready") or count.get("succeeded") for count in counts)


def restart_counts(jobset: Object) -> RestartCounts | None:
    """How often the JobSet has started all Jobs again; None if never."""
    found = Restarts.of_jobset(jobset)
    if not found:
        return None
    return RestartCounts(disruptions=found.disruptions, failures=found.failures, max_restarts=found.limit)


def _restart(jobset: Object) -> str:
    found = Restarts.of_jobset(jobset)
    causes = f" ({found})" if found.disruptions or found.limit else ""
    return f"restart {found.disruptions + found.failures or 1}{causes}"


def _cause(index: PodIndex, gone: DeletedPods, train_job: TrainJob) -> str:
    """The failure that came first; pods of the last attempt may still exist, or are remembered."""
    culprit = gone.first_failure(index, train_job, attempt=restart_attempt(index.jobset) - 1)
    if culprit is not None:
        return culprit.text
    condition = find_condition(index.jobset, "RestartingJobSet") or {}
    return condition.get("message") or ""


def _unsettled(jobset: Object) -> Iterator[tuple[str, Object]]:
    """The replicated Jobs with a Job that is neither ready nor ended: name, and spec of their Jobs."""
    counts = {count["name"]: count for count in (jobset.get("status") or {}).get("replicatedJobsStatus") or []}
    for job in (jobset.get("spec") or {}).get("replicatedJobs") or []:
        count = counts.get(job["name"]) or {}
        if sum(count.get(name) or 0 for name in ("ready", "succeeded", "failed")) < job.get("replicas", 1):
            yield job["name"], (job.get("template") or {}).get("spec") or {}


def _example(reader: Reader, remade: set[ObjectKey], crashing: set[ObjectKey]) -> str:
    pods = [pod for key in sorted(remade | crashing) if (pod := reader.get(PODS, key)) is not None]
    culprit = first_failure(pods)
    if culprit is not None:
        return culprit.text
    return next((crash for pod in pods if (crash := last_crash(pod))), "")


def _refused_jobs(index: PodIndex) -> Iterator[WaitReason]:
    reader, jobset = index.reader, index.jobset
    if not has_events(reader, JOBSETS, key_of(jobset)):
        return
    jobs = reader.keys(JOBS, CONTROLLER_UID, uid_of(jobset))
    wanted = sum(job.get("replicas", 1) for job in (jobset.get("spec") or {}).get("replicatedJobs") or [])
    event = latest_event(reader, JOBSETS, key_of(jobset), uid=uid_of(jobset))
    if event is None or len(jobs) >= wanted or _is_outdated(event, map(index.job, jobs)):
        return
    yield WaitReason(event.reason, "Jobs cannot be created", Example(JOBSETS.kind, name_of(jobset)), event.message)


def _refused_pods(index: PodIndex) -> Iterator[WaitReason]:
    """One problem for each reason, since the Jobs of a JobSet usually share theirs."""
    missing: dict[str, int] = {}
    examples: dict[str, tuple[Object, ProblemEvent]] = {}
    sizes = {name: _size(job) for name, job in _unsettled(index.jobset)}
    jobs = index.reader.keys(JOBS, CONTROLLER_UID, uid_of(index.jobset)) if sizes else ()
    for key in sorted(with_events(index.reader, JOBS, jobs)):
        found = _refused_by(index, key, sizes)
        if found is not None:
            job, event, count = found
            missing[event.reason] = missing.get(event.reason, 0) + count
            examples.setdefault(event.reason, (job, event))
    for reason, (job, event) in examples.items():
        replicated_job = labels_of(job).get(REPLICATED_JOB, "")
        headline = f"{about(missing[reason])} cannot be created"
        yield WaitReason(reason, headline, Example(JOBS.kind, name_of(job)), event.message, replicated_job)


def _refused_by(index: PodIndex, key: ObjectKey, sizes: Mapping[str, int]) -> tuple[Object, ProblemEvent, int] | None:
    """A Job that lacks pods, the event with the reason, and the number of missing pods; None without an event."""
    reader = index.reader
    job = index.job(key)
    if job is None:
        return None
    name = labels_of(job).get(REPLICATED_JOB, "")
    made = reader.keys(PODS, CONTROLLER_UID, uid_of(job))
    failed = made & index.failed_in(name)
    lacking = sizes.get(name, 0) - len(made - failed)
    event = latest_event(reader, JOBS, key, uid=uid_of(job)) if lacking > 0 else None
    if event is None or _is_outdated(event, (reader.get(PODS, pod) for pod in failed)):
        return None
    return job, event, lacking


def _size(job: Object) -> int:
    """Number of pods of a Job that are to exist at the same time."""
    parallelism: int = job.get("parallelism", 1)
    completions: int = job.get("completions", parallelism)
    return min(parallelism, completions)


def _is_outdated(event: ProblemEvent, made: Iterable[Object | None]) -> bool:
    """Whether an object was created after the last event that it could not be.

    Both times are whole seconds. Within the same one the event is outdated: what still fails has another event soon,
    and an outdated one would count for the whole life of the event.
    """
    times = [str(metadata_of(obj).get("creationTimestamp") or "").rstrip("Z") for obj in made if obj is not None]
    return bool(times) and max(times) >= event.seen


_DEBOUNCE = 30
"""Seconds before it is reported: a scheduler with a long queue and a new volume take some."""

_EXAMPLES = 8
"""Most pods whose own claims are read: a JobSet may have thousands of pods with a hundred volumes each."""


def unscheduled(index: PodIndex, without_claims: AbstractSet[ObjectKey]) -> Iterator[WaitReason]:
    """Claims that are not bound, and pods without a reaction of a scheduler.

    The scheduler of the pods `without_claims` says that they wait for a claim, but not for what the claim waits.
    """
    unseen = index.unseen()
    if not unseen and not without_claims:
        return
    claims = _unbound_claims(index, unseen | without_claims)
    yield from claims.values()
    # A scheduler that has found a node for a pod is silent while it waits for claims, or for the rest of a gang.
    if unseen and not claims and not index.waiting():
        yield from _unseen(index, unseen)


def _unseen(index: PodIndex, unseen: AbstractSet[ObjectKey]) -> Iterator[WaitReason]:
    example = min(unseen)
    pod = index.reader.get(PODS, example)
    if pod is None:
        return
    gang = Gang.of(index)
    lacking = gang.unseen(unseen) if gang is not None else None
    if lacking is not None:
        yield lacking
        return
    scheduler = (pod.get("spec") or {}).get("schedulerName") or DEFAULT_SCHEDULER
    message = f"no scheduler called {scheduler} has looked at it; is one installed under this name, and does it run?"
    missing = Named("scheduler", scheduler)
    yield cannot_start(ConditionReason.NO_SCHEDULER, unseen, pod, message, missing=missing, debounce=_DEBOUNCE)


def _unbound_claims(index: PodIndex, pods: AbstractSet[ObjectKey]) -> dict[str, WaitReason]:
    """By reason, the first claim with an event that it cannot be bound.

    Claims are known by their names, for the manager may not read them.
    """
    found: dict[str, WaitReason] = {}
    for claim, event in _claim_events(index, pods):
        debounce = 0 if event.is_warning else _DEBOUNCE
        missing = Named("persistentvolumeclaim", claim)
        waiting = WaitReason(
            event.reason,
            "a volume claim is not bound",
            Example(PERSISTENT_VOLUME_CLAIMS.kind, claim),
            event.message,
            missing=missing,
            debounce=debounce,
        )
        found.setdefault(event.reason, waiting)
    return found


def _claim_events(index: PodIndex, pods: AbstractSet[ObjectKey]) -> Iterator[tuple[str, ProblemEvent]]:
    jobset, reader = index.jobset, index.reader
    examples = heapq.nsmallest(_EXAMPLES, pods)
    own = [f"{pod.name}-{volume}" for volume in ephemeral_volumes(jobset) for pod in examples]
    for claim in sorted({*shared_claims(jobset), *own}):
        key = ObjectKey(namespace_of(jobset), claim)
        event = latest_event(reader, PERSISTENT_VOLUME_CLAIMS, key)
        if event is not None:
            yield claim, event
