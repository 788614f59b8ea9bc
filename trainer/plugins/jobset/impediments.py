"""What keeps the pods of a JobSet from running: they cannot start, or are made again after a failure."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.framework.extension_points import Impediment
from trainer.framework.failure import first_failure, last_crash
from trainer.kube.objects import find_condition
from trainer.kube.resource import PODS
from trainer.plugins.jobset.missing_objects import fields_naming
from trainer.plugins.jobset.mount_failures import FAILED_MOUNT, complaint_about, without_volumes
from trainer.plugins.jobset.pod_troubles import wait_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from trainer.api.trainjob import TrainJob
    from trainer.framework.reader import Reader
    from trainer.kube.objects import Object, ObjectKey
    from trainer.plugins.jobset.gone_pods import GonePods
    from trainer.plugins.jobset.pod_troubles import Troubles

_MAY_PASS = frozenset({"Unschedulable", "SchedulingGated"})
"""Reasons that may go away by themselves, told after the others."""

_FIELDS_LIMIT = 3
"""How many of the fields that name a missing object are told."""

_DEFAULT_BACKOFF_LIMIT = 6
"""Of a Job that does not say (Kubernetes documentation, "Jobs")."""


def waits(troubles: Troubles, train_job: TrainJob) -> list[Impediment]:
    """One impediment for each reason for which pods cannot start."""

    def impediment(reason: str, pods: AbstractSet[ObjectKey], message: str) -> Impediment:
        details = partial(_complaint, message, pods, train_job, troubles.jobset)
        return Impediment(ConditionType.PENDING, reason, f"{_about(len(pods))} cannot start", details)

    found: dict[str, Impediment] = {}
    remaining = troubles.waiting()
    while remaining:
        example = min(remaining)
        pod = troubles.reader.get(PODS, example)
        wait = wait_of(pod) if pod is not None else None
        if wait is None or wait.reason in found:
            remaining.discard(example)
            continue
        alike = troubles.waiting(wait.reason) | {example}
        remaining -= alike
        found[wait.reason] = impediment(wait.reason, alike, wait.message)
    blocked = without_volumes(troubles.reader, troubles.starting())
    if blocked:
        found[FAILED_MOUNT] = impediment(FAILED_MOUNT, blocked, complaint_about(troubles.reader, min(blocked)))
    return sorted(found.values(), key=lambda each: (each.reason in _MAY_PASS, each.reason))


def _complaint(message: str, pods: AbstractSet[ObjectKey], train_job: TrainJob, jobset: Object) -> str:
    """What is said about the first of the pods by name, and which field asks for what is missing."""
    fields = fields_naming(message, train_job.spec.to_object())
    if not fields:
        runtime = f"{train_job.spec.runtime_ref.kind}/{train_job.spec.runtime_ref.name} spec.template."
        fields = [f"{runtime}{field}" for field in fields_naming(message, jobset.get("spec") or {})]
    place = f"{', '.join(fields[:_FIELDS_LIMIT])}: " if fields else ""
    example = "" if len(pods) == 1 else "for example "
    return f"{place}{example}pod {min(pods).name}: {message}"


def restarts(troubles: Troubles, gone: GonePods) -> Iterator[Impediment]:
    """The restart of the whole JobSet, else that of single pods."""
    if _is_restarting(troubles.jobset):
        yield Impediment(
            ConditionType.RESTARTING,
            ConditionReason.RESTARTING_JOB_SET,
            _restart(troubles.jobset),
            partial(_cause, troubles, gone),
        )
        return
    remade = {key for job in _remaking(troubles.jobset) for key in troubles.failed_in(job)}
    crashing = troubles.crashing()
    if remade or crashing:
        headline = f"{_about(len(remade | crashing))} failed and started again"
        details = partial(_example, troubles.reader, remade, crashing)
        yield Impediment(ConditionType.RESTARTING, ConditionReason.RESTARTING_PODS, headline, details)


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
    """Some pods of the last attempt may still be there."""
    culprit = first_failure([*troubles.failed(), *gone.before(troubles.jobset)])
    if culprit is not None:
        return culprit.text
    condition = find_condition(troubles.jobset, "RestartingJobSet") or {}
    return condition.get("message") or ""


def _remaking(jobset: Object) -> Iterator[str]:
    """Replicated Jobs that are not ready and whose Jobs make failed pods again."""
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


def _about(pods: int) -> str:
    """A number that seldom changes: the highest power of two that there are at least."""
    return "1 pod" if pods == 1 else f"at least {1 << (pods.bit_length() - 1)} pods"
