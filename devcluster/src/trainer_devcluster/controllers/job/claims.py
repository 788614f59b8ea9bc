"""Which pods are a Job's: those that it controls, and stray ones that its selector matches.

A pod without a controller whose labels match is adopted; a pod whose labels no longer match is let go. With a generated
selector neither happens by accident; with `manualSelector` it is how a Job takes over the pods of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from trainer.kube.cache.store import CONTROLLER_UID
from trainer.kube.client import PatchType
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import (
    controller_reference,
    is_being_deleted,
    key_of,
    name_of,
    namespace_of,
    uid_of,
)
from trainer.kube.resource import JOBS, PODS
from trainer.kube.selectors import LabelSelector
from trainer_devcluster.controllers.job.pods import TRACKING_FINALIZER
from trainer_devcluster.controllers.job.spec import is_complete_or_failed, is_managed_here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.cache.store import Lister
    from trainer.kube.client import Client
    from trainer.kube.objects import Object, ObjectKey

log = structlog.get_logger(__name__)

STRAY_PODS = "stray-pods"
"""Index of pods: those without a controller, by namespace."""


def stray_in(pod: CachedObject) -> tuple[str, ...]:
    """Index function of `STRAY_PODS`."""
    is_controlled = any(owner.controller for owner in pod.meta.owner_references or ())
    return () if is_controlled else (pod.key.namespace,)


def jobs_that_may_adopt(jobs: Lister) -> Callable[[CachedObject], list[ObjectKey]]:
    """A map function from stray pods to the Jobs that claim them."""

    def find(pod: CachedObject) -> list[ObjectKey]:
        if not stray_in(pod):
            return []
        return [key_of(job) for job in jobs.list(pod.key.namespace) if may_adopt(job, pod.labels)]

    return find


def may_adopt(job: Object, labels: Mapping[str, str]) -> bool:
    """Whether the Job is one of ours that goes on and selects these labels."""
    if is_being_deleted(job) or is_complete_or_failed(job) or not is_managed_here(job):
        return False
    return bool(job["spec"].get("selector")) and _selector(job).matches(labels)


@dataclass(frozen=True, slots=True)
class PodClaims:
    """Finds, adopts and lets go pods of Jobs."""

    client: Client
    pods: Lister

    async def settle(self, job: Object) -> bool:
        """Adopt and let go what has to be; returns whether anything has changed, so that the caller starts over."""
        if is_being_deleted(job) or is_complete_or_failed(job) or not job["spec"].get("selector"):
            return False
        selector = _selector(job)
        adopted = [
            pod
            for pod in self._peek(STRAY_PODS, namespace_of(job))
            if pod.meta.deletion_timestamp is None and selector.matches(pod.labels)
        ]
        released = [pod for pod in self._peek(CONTROLLER_UID, uid_of(job)) if not selector.matches(pod.labels)]
        if adopted and not await self._still_lives(job):
            adopted = []
        has_adopted = await self._patch_all(adopted, _adoption(job), "adopted pod")
        has_released = await self._patch_all(released, _release(job), "let pod go")
        return has_adopted or has_released

    def _peek(self, index: str, value: str) -> Iterator[CachedObject]:
        """Pods as the cache keeps them: most are looked at in each reconcile and neither adopted nor let go."""
        found = map(self.pods.peek, self.pods.keys_by_index(index, value))
        return (pod for pod in found if pod is not None)

    async def _still_lives(self, job: Object) -> bool:
        """Asked of the server: a Job that is being deleted must not take in pods that its deletion has orphaned."""
        try:
            found = await self.client.get(JOBS, name_of(job), namespace_of(job))
        except NotFoundError:
            return False
        return uid_of(found) == uid_of(job) and not is_being_deleted(found)

    async def _patch_all(self, pods: Iterable[CachedObject], metadata: Object, event: str) -> bool:
        has_changed = False
        for pod in pods:
            change = {"metadata": {**metadata, "uid": pod.uid}}
            key = pod.key
            try:
                await self.client.patch(PODS, key.name, change, key.namespace, patch_type=PatchType.STRATEGIC)
            except NotFoundError:
                continue
            log.info(event, pod=key.name)
            has_changed = True
        return has_changed


def _selector(job: Object) -> LabelSelector:
    return LabelSelector.from_object(job["spec"]["selector"])


def _adoption(job: Object) -> Object:
    return {"ownerReferences": [controller_reference(job)], "finalizers": [TRACKING_FINALIZER]}


def _release(job: Object) -> Object:
    return {
        "ownerReferences": [{"$patch": "delete", "uid": uid_of(job)}],
        "$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER],
    }
