"""Watching every served resource, those of custom resource definitions included, as they come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import structlog

from trainer.devcluster.controllers.garbage_collector.collector import GarbageCollector
from trainer.devcluster.controllers.served_resources import RawClient, served_resources
from trainer.kube.clock import move_on_after
from trainer.kube.controller import Controller
from trainer.kube.informer import Informer
from trainer.kube.objects import ObjectKey, uid_of
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from trainer.devcluster.controllers.options import ControllerOptions
    from trainer.kube.manager import Manager
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

log = structlog.get_logger(__name__)

_IGNORED_KINDS = frozenset({"Event"})
"""Numerous, and nobody's dependents."""
_SYNC_TIMEOUT = 30.0
"""Seconds after which collection starts although a resource has not been listed."""


class ResourceMonitor:
    """Feeds the collector from one informer per resource."""

    def __init__(self, manager: Manager, client: RawClient, options: ControllerOptions) -> None:
        self._manager = manager
        self._client = client
        self._controller = Controller(
            "garbage-collector", manager, self._collect, max_concurrent_reconciles=options.workers
        )
        self._collector = GarbageCollector(manager.client, lambda uid: self._controller.enqueue(ObjectKey("", uid)))
        self._changed = anyio.Event()
        self._scopes: dict[Resource, anyio.CancelScope] = {}
        self._synced = anyio.Event()
        manager.informer(CUSTOM_RESOURCE_DEFINITIONS).add_handler(self)

    async def run(self) -> None:
        """Keep the informers in step with what is served, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._mark_synced, await self._follow(tasks))
            while True:
                await self._changed.wait()
                self._changed = anyio.Event()
                await self._follow(tasks)

    def on_add(self, obj: Object, *, initial: bool) -> None:  # noqa: ARG002 - the handler's signature
        """Look again at what is served."""
        self._changed.set()

    def on_update(self, old: Object, new: Object) -> None:
        """Look again at what is served, unless it is the same."""
        if old.get("spec") != new.get("spec") or old.get("status") != new.get("status"):
            self._changed.set()

    def on_delete(self, obj: Object) -> None:  # noqa: ARG002
        """Look again at what is served."""
        self._changed.set()

    async def _mark_synced(self, informers: list[Informer]) -> None:
        # Limited, because a resource may go before it has been listed.
        async with move_on_after(self._manager.clock, _SYNC_TIMEOUT):
            for informer in informers:
                await informer.wait_for_sync()
        self._synced.set()

    async def _collect(self, key: ObjectKey) -> None:
        # Before the first lists are complete an owner may seem to have no dependents.
        await self._synced.wait()
        await self._collector.collect(key.name)

    async def _follow(self, tasks: TaskGroup) -> list[Informer]:
        """Start and stop informers; returns those that are new."""
        served = [entry for entry in await served_resources(self._client) if entry.kind not in _IGNORED_KINDS]
        for resource in self._scopes.keys() - set(served):
            self._scopes.pop(resource).cancel()
            self._collector.forget_resource(resource)
        new = [resource for resource in served if resource not in self._scopes]
        informers = [self._start(tasks, resource) for resource in new]
        self._collector.serve(served)
        if new:
            log.info("watching resources", new=[resource.qualified_name for resource in new])
        return informers

    def _start(self, tasks: TaskGroup, resource: Resource) -> Informer:
        """Follow a resource with an informer of our own, which ends with the resource."""
        informer = Informer(self._manager.client, resource, clock=self._manager.clock)
        informer.add_handler(_Feed(self._collector, resource))
        scope = self._scopes[resource] = anyio.CancelScope()
        tasks.start_soon(_run_within, scope, informer, name=f"garbage collector informer {resource.qualified_name}")
        return informer


class _Feed:
    """Informer handler that tells the collector of one resource."""

    def __init__(self, collector: GarbageCollector, resource: Resource) -> None:
        self._collector = collector
        self._resource = resource

    def on_add(self, obj: Object, *, initial: bool) -> None:  # noqa: ARG002
        self._collector.observe(self._resource, obj)

    def on_update(self, old: Object, new: Object) -> None:  # noqa: ARG002
        self._collector.observe(self._resource, new)

    def on_delete(self, obj: Object) -> None:
        self._collector.forget(uid_of(obj))


async def _run_within(scope: anyio.CancelScope, informer: Informer) -> None:
    with scope:
        await informer.run()


def register(manager: Manager, client: RawClient, options: ControllerOptions) -> None:
    """Have the manager run the garbage collector."""
    monitor = ResourceMonitor(manager, client, options)
    manager.add(monitor.run, name="garbage collector")
