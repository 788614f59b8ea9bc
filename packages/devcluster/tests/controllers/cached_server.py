"""A fake API server that controllers see through a cache, and how far that lags behind is up to the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

import anyio
from anyio.abc import TaskGroup

from trainer.kube.cache.cache import Cache
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.own_writes import OwnWrites
from trainer.kube.cache.store import Lister, Store
from trainer.kube.errors import NamespaceTerminatingError
from trainer.kube.manager.managed_client import ManagedClient
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.workloads import JOBSETS
from trainer_kube_testing import WRITES, FakeClient, ManualClock, settle

TERMINATING = NamespaceTerminatingError(
    403, "unable to create new content in namespace n because it is being terminated"
)
"""What a namespace that is being deleted answers to creations."""


def lister_of(*objects: Object) -> Lister:
    """A cache that holds these objects and never changes."""
    store = Store()
    for obj in objects:
        store.put(CachedObject.of(obj))
    return Lister(store, OwnWrites(ManualClock()))


class CachedServer:
    """The server, and a process with a cache of it that a test can restart.

    Attributes:
        server: for what users, the kubelet and other controllers do.
        cache: watch events reach it only by `deliver`; it shows at once what `client` writes.
        client: for the controllers of the process.
    """

    def __init__(self, tasks: TaskGroup, now: datetime, resources: Sequence[Resource], *objects: Object) -> None:
        self._tasks = tasks
        self._resources = resources
        self.clock = ManualClock(now)
        self.server = FakeClient(*objects, resources=[JOBSETS], clock=self.clock)
        self._forget()

    async def start(self) -> None:
        """Start the process with a cache of the present state."""
        for resource in self._resources:
            self.cache.informer(resource)
        self._tasks.start_soon(self._run)
        await self.cache.wait_for_sync()

    async def restart(self) -> None:
        """Lose what the process has in memory, as a crash does."""
        self._process.cancel()
        self._forget()
        await self.start()

    async def deliver(self, count: int | None = None) -> None:
        """Let the next events (default: all until now) reach the cache."""
        self.server.faults.release_watches(count)
        await settle()
        self.server.faults.hold_watches()

    def lister(self, resource: Resource) -> Lister:
        """What the process sees of a resource."""
        return self.cache.informer(resource).lister

    @property
    def writes(self) -> list[tuple[str, str, str]]:
        """Verb, resource and name of every write request, in order."""
        return [(made.verb, made.resource.plural, made.name) for made in self.server.requests_of(*WRITES)]

    def _forget(self) -> None:
        self._process = anyio.CancelScope()
        self.cache = Cache(self.server, clock=self.clock)
        self.client = ManagedClient(self.server, self.cache)

    async def _run(self) -> None:
        with self._process:
            await self.cache.run()


@asynccontextmanager
async def cached_server(now: datetime, resources: Sequence[Resource], *objects: Object) -> AsyncIterator[CachedServer]:
    """A server with these objects, whose watches are held.

    Args:
        now: the time.
        resources: what the process caches.
        objects: what exists at the start, in the cache as well.
    """
    async with anyio.create_task_group() as tasks:
        server = CachedServer(tasks, now, resources, *objects)
        await server.start()
        server.server.faults.hold_watches()
        yield server
        tasks.cancel_scope.cancel()
