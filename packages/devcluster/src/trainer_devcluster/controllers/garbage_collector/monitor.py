"""Watching every served resource, those of custom resource definitions included, as they come and go."""

from __future__ import annotations

import anyio
import structlog

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.registration import Registration
from trainer.kube.client import RawClient
from trainer.kube.clock import move_on_after
from trainer.kube.controller.controller import Controller
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from trainer.kube.selection import Selection
from trainer_devcluster.controllers.garbage_collector.collector import GarbageCollector
from trainer_devcluster.controllers.options import ControllerOptions
from trainer_devcluster.controllers.served_resources import served_resources

log = structlog.get_logger(__name__)

_METADATA = Selection(metadata_only=True)
"""Who owns whom is written in the metadata, of objects of any size."""
_IGNORED_KINDS = frozenset({"Event"})
"""Numerous, and nobody's dependents."""
_SYNC_TIMEOUT = 30.0
"""Seconds after which collection starts although a resource has not been listed."""
_SERVED = ObjectKey("", "served resources")
"""The only key of the controller that follows them."""


class ResourceMonitor:
    """Feeds the collector from one informer per resource; constructing it registers it with the manager."""

    def __init__(self, manager: Manager, client: RawClient, options: ControllerOptions) -> None:
        self._manager = manager
        self._client = client
        self._collections = Controller(
            "garbage-collector", manager, self._collect, max_concurrent_reconciles=options.workers
        ).watches_nothing()
        self._collector = GarbageCollector(manager.client, lambda uid: self._collections.enqueue(ObjectKey("", uid)))
        self._followed: dict[Resource, Registration] = {}
        self._synced = anyio.Event()
        follower = Controller("garbage-collector-resources", manager, self._follow)
        follower.watches(CUSTOM_RESOURCE_DEFINITIONS, lambda _: [_SERVED])
        follower.enqueue(_SERVED)

    async def _collect(self, key: ObjectKey) -> None:
        # Before the first lists are complete an owner may seem to have no dependents.
        await self._synced.wait()
        await self._collector.collect(key.name)

    async def _follow(self, _: ObjectKey) -> None:
        """Bring the informers in step with what is served."""
        served = [entry for entry in await served_resources(self._client) if entry.kind not in _IGNORED_KINDS]
        self._collector.serve(served)
        for resource in self._followed.keys() - set(served):
            del self._followed[resource]
            self._manager.cache.remove(resource, _METADATA)
            self._collector.forget_resource(resource)
        new = [resource for resource in served if resource not in self._followed]
        for resource in new:
            informer = self._manager.informer(resource, _METADATA)
            self._followed[resource] = informer.add_handler(Feed(self._collector, resource))
        if new:
            log.info("watching resources", new=[resource.qualified_name for resource in new])
        if not self._synced.is_set():
            await self._wait_for_first_lists()

    async def _wait_for_first_lists(self) -> None:
        # Limited, because a resource may go before it has been listed.
        async with move_on_after(self._manager.clock, _SYNC_TIMEOUT):
            for registration in self._followed.values():
                await registration.wait_for_sync()
        self._synced.set()


class Feed:
    """Informer handler that tells the collector of one resource."""

    def __init__(self, collector: GarbageCollector, resource: Resource) -> None:
        self._collector = collector
        self._resource = resource

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:  # noqa: ARG002 - the handler's signature
        """Add an object."""
        self._collector.observe(self._resource, obj)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:  # noqa: ARG002
        """Owners, finalizers or a deletion may have come or gone."""
        self._collector.observe(self._resource, new)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002
        """Remove an object."""
        self._collector.forget(obj.uid)


def register(manager: Manager, client: RawClient, options: ControllerOptions) -> None:
    """Have the manager run the garbage collector."""
    ResourceMonitor(manager, client, options)
