"""Changes of healthy pods that trigger a reconcile: they may end a reason to wait, or lack a scheduler.

Nearly all pods start without trouble, and cost no reconcile then: their JobSet says enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.kube.objects import ObjectKey
from trainer.kube.recent import Recent
from trainer.plugins.jobset.pod_troubles import is_unseen, troubles_of
from trainer.workloads import JOBSETS

if TYPE_CHECKING:
    from trainer.framework import Reader
    from trainer.kube.cache.cached_object import CachedObject

ACTIVE = "jobset-active"
"""Name of the index of JobSets with an active Job, each as `<namespace>/<name>`."""

REMEMBERED = 4096
"""Most remembered JobSets with waiting pods; the least recently used is dropped, and reconciled with its JobSet."""


def active_jobsets(jobset: CachedObject) -> tuple[str, ...]:
    """Index function of `ACTIVE`."""
    counts = (jobset.get("status") or {}).get("replicatedJobsStatus") or []
    return (str(jobset.key),) if any(count.get("active") for count in counts) else ()


class Attention:
    """Remembers JobSets with waiting pods, in memory only; a manager that starts reconciles all of them."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._waiting: Recent[ObjectKey, None] = Recent(REMEMBERED)

    def pay(self, jobset: ObjectKey, *, waits: bool) -> None:
        """Remember whether pods of a JobSet wait."""
        if waits:
            self._waiting.put(jobset, None)
        else:
            self._waiting.pop(jobset)

    def is_due(self, old: CachedObject | None, new: CachedObject | None) -> bool:
        """Predicate: a pod of a waiting JobSet has changed, or a late pod has no scheduler yet.

        A pod that comes before its JobSet has active ones is looked at when the JobSet says so.
        """
        pod = new or old
        jobset = pod.labels.get(JOBSET_NAME) if pod is not None else None
        if pod is None or jobset is None:
            return False
        key = ObjectKey(pod.key.namespace, jobset)
        if key in self._waiting:
            return old is None or new is None or troubles_of(old) != troubles_of(new)
        return old is None and new is not None and bool(self._reader.keys(JOBSETS, ACTIVE, str(key))) and is_unseen(new)
