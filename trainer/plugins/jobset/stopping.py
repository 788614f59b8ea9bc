"""Pods of a JobSet that are to go, and are still there: of a training that is suspended, fails or restarts.

A training that restarts is Stopping, then Restarting, then Running: between two of them, no look at it may find less.
So what the condition Stopping has said counts until Job and JobSet controllers have acted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from trainer.api.jobset_pods import age_of, node_name
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.framework import Evidence, PodProblem
from trainer.kube.objects import Object, ObjectKey, key_of, name_of
from trainer.kube.resource import PODS
from trainer.plugins.jobset.deleted_pods import DeletedPods, of_size, said_by, stop_of
from trainer.plugins.jobset.pod_index import PodIndex
from trainer.plugins.jobset.pod_problems import is_ready, is_restarting
from trainer.plugins.jobset.revision import is_decided
from trainer.plugins.jobset.wait import about
from trainer.workloads.pod_life import pod_life
from trainer.workloads.restarts import restart_attempt

_SHOWN = 5
"""Most pods that a headline names; of more it says about how many there are."""


def suspended_pods(index: PodIndex, train_job: TrainJob) -> Iterator[PodProblem]:
    """Pods of a suspended JobSet, or of one that is about to be; those of one that others have resumed may stay."""
    is_suspended = (index.jobset.get("spec") or {}).get("suspend")
    if not is_suspended and not (train_job.spec.suspend and is_decided(index.jobset, suspend=True)):
        return
    keys = index.there()
    if keys:
        names = _named(_read(index, keys)) if len(keys) <= _SHOWN else about(len(keys))
        headline = f"{names} {'has' if len(keys) == 1 else 'have'} not ended yet"
        yield _problem(ConditionReason.SUSPENDING_PODS, headline, min(keys).name, str)


def stopping_pods(index: PodIndex, gone: DeletedPods, train_job: TrainJob) -> Iterator[PodProblem]:
    """Pods that were deleted and have not ended, and those that a restart of the JobSet deletes; then their return."""
    attempt, restarts = restart_attempt(index.jobset), is_restarting(index.jobset)
    lost = index.lost()  # is a reason of its own
    pods = of_size([pod for pod in index.going() if key_of(pod) not in lost], index.jobset)
    if restarts:
        pods = [pod for pod in _read(index, index.there()) if age_of(pod).restart_attempt < attempt] or pods
    before = stop_of(train_job)
    if pods:
        is_suspension = bool(said_by(before, ConditionReason.SUSPENDING_PODS))  # resumed meanwhile
        reason = ConditionReason.SUSPENDING_PODS if is_suspension else ConditionReason.STOPPING_PODS
        failed = attempt - 1 if restarts else attempt
        headline = f"{about(len(pods))} are stopping"
        if len(pods) <= _SHOWN:
            headline = f"{_named(pods)} {'is' if len(pods) == 1 else 'are'} stopping{_since(pods)}"
        yield _problem(reason, headline, name_of(pods[0]), lambda: _cause(index, gone, failed, train_job))
        return
    headline, _, cause = said_by(before, ConditionReason.STOPPING_PODS).partition(": ")
    if headline and not restarts:
        if not index.there():
            yield _problem(ConditionReason.STOPPING_PODS, headline, "", lambda: cause)
        elif not is_ready(index.jobset):
            headline = "pods that were stopped are made again"
            yield PodProblem(ConditionType.RESTARTING, ConditionReason.RESTARTING_PODS, headline, lambda: cause)


def _read(index: PodIndex, keys: Iterable[ObjectKey]) -> list[Object]:
    found = (index.reader.get(PODS, key) for key in sorted(keys))
    return [pod for pod in found if pod is not None]


def _problem(reason: ConditionReason, headline: str, pod: str, details: Callable[[], str]) -> PodProblem:
    return PodProblem(ConditionType.STOPPING, reason, headline, details, evidence=Evidence(PODS.kind, pod, headline))


def _cause(index: PodIndex, gone: DeletedPods, attempt: int, train_job: TrainJob) -> str:
    culprit = gone.first_failure(index, train_job, attempt=attempt)
    return culprit.text if culprit is not None else ""


def _named(pods: Iterable[Object]) -> str:
    return ", ".join(sorted(map(node_name, pods)))


def _since(pods: Iterable[Object]) -> str:
    """When the first of them was deleted, as the end of a headline."""
    since = min((life.since for pod in pods if (life := pod_life(pod)).is_going), default="")
    return f" since {since}" if since else ""
