"""Pods whose volumes cannot be mounted, which only events tell of: in its status such a pod is merely being made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.framework.extension_points import Watch
from trainer.kube.controller.predicates import on
from trainer.kube.objects import ObjectKey, labels_of
from trainer.kube.resource import EVENTS, PODS
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from trainer.framework.reader import Reader
    from trainer.kube.cache.cached_object import CachedObject

FAILED_MOUNT = "FailedMount"
"""Reason of the kubelet's events; it repeats them for as long as it tries."""

_ABOUT = "failed-mounts"
"""Name of the index of events by their pod."""


def failed_mounts(reader: Reader) -> Watch:
    """The events, which belong to the TrainJob of the pod that they are about."""

    def train_jobs(event: CachedObject) -> list[ObjectKey]:
        pod = reader.get(PODS, _pod_of(event))
        name = labels_of(pod).get(JOBSET_NAME) if pod is not None else None
        return [ObjectKey(event.key.namespace, name)] if name else []

    return Watch(
        EVENTS,
        Selection(field_selector=f"involvedObject.kind=Pod,reason={FAILED_MOUNT}"),
        train_jobs=train_jobs,
        # A repeat says nothing new, and the end of an event, an hour later, nothing at all.
        predicate=on(updated=lambda _old, _new: False, deleted=lambda _old: False),
        indexes={_ABOUT: lambda event: (str(_pod_of(event)),)},
    )


def without_volumes(reader: Reader, starting: Iterable[ObjectKey]) -> AbstractSet[ObjectKey]:
    """Those of the pods that wait for a volume."""
    return {pod for pod in starting if reader.keys(EVENTS, _ABOUT, str(pod))}


def complaint_about(reader: Reader, pod: ObjectKey) -> str:
    """What the kubelet says about a pod that waits for a volume."""
    event = next((reader.get(EVENTS, key) for key in sorted(reader.keys(EVENTS, _ABOUT, str(pod)))), None)
    return (event or {}).get("message") or "a volume cannot be mounted"


def _pod_of(event: CachedObject) -> ObjectKey:
    """In the namespace of the event, whatever it says: who writes events in one namespace knows nothing of others."""
    about = event.get("involvedObject") or {}
    return ObjectKey(event.key.namespace, about.get("name") or "")
