"""Failed pods that no longer exist: JobSet deletes them when it restarts, often before they are reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.api.jobset_labels import JOBSET_NAME, JOBSET_UID
from trainer.api.jobset_pods import age_of
from trainer.framework import first_failure
from trainer.kube.objects import name_of, namespace_of, uid_of
from trainer.kube.recent import Recent
from trainer.plugins.jobset.pod_troubles import is_failure, trouble_changed

if TYPE_CHECKING:
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.objects import Object

REMEMBERED = 512
"""Most JobSets with a remembered pod, a few KiB each; the least recently used is dropped first."""

_Owner = tuple[str, str, str]
"""Namespace, name and uid of a JobSet, from labels of its pods."""


@dataclass(frozen=True, slots=True)
class _Gone:
    restart_attempt: int
    pod: Object


class GonePods:
    """Remembers the pod that failed first in the latest attempt of each JobSet, in memory only."""

    def __init__(self) -> None:
        self._found: Recent[_Owner, _Gone] = Recent(REMEMBERED)

    def trouble_changed(self, old: CachedObject | None, new: CachedObject | None) -> bool:
        """Predicate: a pod got or lost a problem; it remembers a failed pod that is deleted."""
        if new is None and old is not None and is_failure(old):
            self._remember(old.decode(), (old.key.namespace, old.labels[JOBSET_NAME], old.labels.get(JOBSET_UID, "")))
        return trouble_changed(old, new)

    def before(self, jobset: Object) -> list[Object]:
        """The pod that failed first in the attempt before the present one; empty if unknown."""
        attempt = ((jobset.get("status") or {}).get("restarts") or 0) - 1
        owners = ((namespace_of(jobset), name_of(jobset), uid) for uid in (uid_of(jobset), ""))
        found = (self._found.get(owner) for owner in owners)
        return [gone.pod for gone in found if gone is not None and gone.restart_attempt == attempt]

    def _remember(self, pod: Object, owner: _Owner) -> None:
        gone, present = _Gone(age_of(pod).restart_attempt, pod), self._found.get(owner)
        if present is not None and present.restart_attempt >= gone.restart_attempt:
            is_earlier = present.restart_attempt == gone.restart_attempt and _is_first(pod, present.pod)
            gone = gone if is_earlier else present
        self._found.put(owner, gone)


def _is_first(pod: Object, other: Object) -> bool:
    failure = first_failure([pod, other])
    return failure is not None and failure.pod == name_of(pod)
