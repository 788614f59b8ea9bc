"""Counts the pods of trainings that were disrupted, by why."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from prometheus_client import CollectorRegistry, Counter

from trainer.api.jobset_pods import jobset_keys
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.metrics.cardinality import LIMIT, BoundedCounter
from trainer.kube.objects import ObjectKey, mapping_at
from trainer.workloads.disruption import Disruption
from trainer.workloads.pod_life import pod_life


class DisruptionSeries:
    """The series of disrupted pods."""

    def __init__(self, registry: CollectorRegistry, *, limit: int = LIMIT) -> None:
        text = "Pods of trainings that were evicted, preempted or otherwise disrupted, by why."
        counter = Counter("trainer_pods_disrupted_total", text, ("namespace", "reason"), registry=registry)
        self.disrupted = BoundedCounter(counter, (True, False), limit)

    def remove_stale(self, namespaces: AbstractSet[str]) -> None:
        """Remove the series that have not changed since the last call, of namespaces without TrainJobs."""
        self.disrupted.remove_stale(lambda values: values[0] in namespaces)


class DisruptedPods:
    """Handles the events of the informer of pods, and counts a pod once, while this process is the leader.

    Those of JobSets without a TrainJob are not its business. A pod that somebody deletes is not counted: its object
    does not say whether its Job has done it.
    """

    def __init__(
        self, series: DisruptionSeries, is_leader: Callable[[], bool], has_train_job: Callable[[ObjectKey], bool]
    ) -> None:
        self._series = series
        self._is_leader = is_leader
        self._has_train_job = has_train_job

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:
        """Handle an added pod; those of the first list were disrupted before."""
        if not initial:
            self._count(None, obj)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """Handle a changed pod; one that has ended before, which drains evict as well, loses nothing."""
        if old is not new and not _has_ended(old):
            self._count(old, new)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:
        """Handle a deleted pod, which has been marked or has ended before."""

    def _count(self, old: CachedObject | None, new: CachedObject) -> None:
        reason = _disruption(new)
        if reason is None or not self._is_leader() or not any(map(self._has_train_job, jobset_keys(new))):
            return
        if old is None or _disruption(old) is None:
            self._series.disrupted.labels(new.key.namespace, reason.value).inc()


def _has_ended(pod: CachedObject) -> bool:
    may_have = b'"Succeeded"' in pod.raw or b'"Failed"' in pod.raw
    return may_have and mapping_at(pod.decode(), "status").get("phase") in {"Succeeded", "Failed"}


def _disruption(pod: CachedObject) -> Disruption | None:
    """Why a pod was disrupted; one that has neither ended nor is deleted, as nearly all, is not decoded."""
    may_be = pod.meta.deletion_timestamp is not None or b'"Failed"' in pod.raw
    return pod_life(pod.decode()).disruption if may_be else None
