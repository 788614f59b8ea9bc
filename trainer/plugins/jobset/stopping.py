"""Pods of a JobSet that are to go, and are still there: of a training that is suspended, fails or restarts.

A training that restarts is Stopping, then Restarting, then Running: between two of them, no look at it may find less.
So what the condition Stopping has said counts until Job and JobSet controllers have acted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from trainer.api.jobset_pods import age_of, node_name
from trainer.api.metadata import Condition
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.framework import Evidence, PodProblem
from trainer.kube.objects import Object, key_of, name_of
from trainer.kube.resource import PODS
from trainer.plugins.jobset.deleted_pods import DeletedPods, of_size
from trainer.plugins.jobset.pod_index import PodIndex
from trainer.plugins.jobset.revision import is_decided
from trainer.plugins.jobset.wait import about
from trainer.workloads.pod_life import pod_life

_SHOWN = 5
"""Most pods that a message names."""


def suspended_pods(index: PodIndex, train_job: TrainJob) -> Iterator[PodProblem]:
    """Pods of a suspended JobSet, or of one that is about to be; those of one that others have resumed may stay."""
    is_suspended = (index.jobset.get("spec") or {}).get("suspend")
    if not is_suspended and not (train_job.spec.suspend and is_decided(index.jobset, suspend=True)):
        return
    keys = index.there()
    if keys:
        headline = "pods have not ended yet"
        yield _problem(ConditionReason.SUSPENDING_PODS, headline, min(keys).name, lambda: _named(_read(index)))


def stopping_pods(
    index: PodIndex, gone: DeletedPods, train_job: TrainJob, *, is_restarting: bool
) -> Iterator[PodProblem]:
    """Pods that were deleted and have not ended, and those that a restart of the JobSet deletes; then their return."""
    attempt = (index.jobset.get("status") or {}).get("restarts") or 0
    lost = index.lost()  # is a reason of its own
    pods = of_size([pod for pod in index.going() if key_of(pod) not in lost], index.jobset)
    if is_restarting:
        pods = [pod for pod in _read(index) if age_of(pod).restart_attempt < attempt] or pods
    before = _before(train_job)
    if pods:
        is_suspension = _has_said(before, ConditionReason.SUSPENDING_PODS)  # resumed meanwhile
        reason = ConditionReason.SUSPENDING_PODS if is_suspension else ConditionReason.STOPPING_PODS
        failed = attempt - 1 if is_restarting else attempt
        yield _problem(reason, _HEADLINE, name_of(pods[0]), lambda: _details(index, gone, failed, pods))
    elif before is not None and _has_said(before, ConditionReason.STOPPING_PODS) and not is_restarting:
        if not index.there():
            yield _problem(ConditionReason.STOPPING_PODS, _HEADLINE, "", str)
        elif not _is_ready(index.jobset):
            headline, said = "pods that were stopped are made again", before.message
            yield PodProblem(ConditionType.RESTARTING, ConditionReason.RESTARTING_PODS, headline, lambda: said)


_HEADLINE = "pods are stopping"


def _before(train_job: TrainJob) -> Condition | None:
    conditions = (train_job.status and train_job.status.conditions) or ()
    held = (each for each in conditions if each.type == ConditionType.STOPPING and each.status == "True")
    return next(held, None)


def _has_said(condition: Condition | None, reason: ConditionReason) -> bool:
    """Whether this is a reason of the condition, such as beside a lost node: each has a line of the message."""
    if condition is None:
        return False
    return condition.reason == reason or f"\n{reason}: " in condition.message


def _is_ready(jobset: Object) -> bool:
    counts = (jobset.get("status") or {}).get("replicatedJobsStatus") or []
    return any(count.get("ready") or count.get("succeeded") for count in counts)


def _read(index: PodIndex) -> list[Object]:
    found = (index.reader.get(PODS, key) for key in sorted(index.there()))
    return [pod for pod in found if pod is not None]


def _problem(reason: ConditionReason, headline: str, pod: str, details: Callable[[], str]) -> PodProblem:
    return PodProblem(ConditionType.STOPPING, reason, headline, details, evidence=Evidence(PODS.kind, pod, headline))


def _details(index: PodIndex, gone: DeletedPods, attempt: int, pods: Iterable[Object]) -> str:
    culprit = gone.first_failure(index, attempt=attempt)
    return "; ".join([*([culprit.text] if culprit is not None else []), _named(pods)])


def _named(pods: Iterable[Object]) -> str:
    """How many, which, and since when the first of them was deleted."""
    listed = list(pods)
    names = sorted(map(node_name, listed))
    shown = ", ".join(names) if len(names) <= _SHOWN else f"{about(len(names))}, such as {', '.join(names[:_SHOWN])}"
    since = min((life.since for pod in listed if (life := pod_life(pod)).is_going), default="")
    return f"{shown}{f', since {since}' if since else ''}"
