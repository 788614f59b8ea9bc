"""Problems of a JobSet's pods: they cannot be created or started, or are restarted after a failure."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.framework import PodProblem, first_failure, last_crash
from trainer.kube.objects import find_condition, labels_of, uid_of
from trainer.kube.resource import PODS
from trainer.plugins.jobset.complaints import REASONS, complained_of, latest_complaint
from trainer.plugins.jobset.pod_troubles import wait_of
from trainer.plugins.jobset.refusals import refusals
from trainer.plugins.jobset.revision import is_decided
from trainer.plugins.jobset.unscheduled import unscheduled
from trainer.plugins.jobset.wait import about, cannot_start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework import Reader
    from trainer.kube.objects import Object, ObjectKey
    from trainer.plugins.jobset.gone_pods import GonePods
    from trainer.plugins.jobset.pod_troubles import Troubles
    from trainer.plugins.jobset.wait import Waiting

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
