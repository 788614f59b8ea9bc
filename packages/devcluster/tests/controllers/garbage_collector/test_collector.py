"""The graph of owner references, and what the collector does about it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from packages.devcluster.tests.controllers.cached_server import CachedServer, cached_server
from trainer.kube.client import DeleteOptions, Propagation
from trainer.kube.objects import Object, name_of, uid_of
from trainer.kube.resource import CONFIG_MAPS, JOBS, PODS, SERVICES, Resource
from trainer.workloads import JOBSETS
from trainer_devcluster.controllers.garbage_collector.collector import (
    GarbageCollector,
    GraphNode,
    RecentUids,
)
from trainer_devcluster.controllers.garbage_collector.monitor import Feed


def node(uid: str, *owners: str, **metadata: object) -> GraphNode:
    references = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": f"name-{owner}", "uid": owner, "blockOwnerDeletion": True}
        for owner in owners
    ]
    obj: Object = {"metadata": {"name": uid, "namespace": "n", "uid": uid, "ownerReferences": references, **metadata}}
    return GraphNode.of(CONFIG_MAPS, obj)


NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
RESOURCES = (JOBSETS, JOBS, PODS, SERVICES)


class World:
    """A server and a collector that works when the test says so."""

    def __init__(self, cluster: CachedServer) -> None:
        self.cluster = cluster
        self.server = cluster.server
        self.queue: dict[str, None] = {}
        self.collector = GarbageCollector(cluster.client, lambda uid: self.queue.update({uid: None}))
        self.collector.serve(RESOURCES)
        for resource in RESOURCES:
            cluster.cache.informer(resource).add_handler(Feed(self.collector, resource))

    async def create(self, resource: Resource, name: str, *owners: Object, **metadata: Any) -> Object:
        """Store an object; every owner is a controller-like reference."""
        references = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": name_of(owner),
                "uid": uid_of(owner),
                "blockOwnerDeletion": True,
            }
            for owner in owners
        ]
        fields = {"name": name, "namespace": "n", "ownerReferences": references, **metadata}
        created = self.server.add({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": fields})
        await self.cluster.deliver()
        return created

    async def delete(self, resource: Resource, name: str, propagation: Propagation = Propagation.BACKGROUND) -> None:
        await self.server.delete(resource, name, "n", DeleteOptions(propagation=propagation))

    async def settle(self) -> None:
        """Let the collector work until it has nothing left to do."""
        await self.cluster.deliver()
        while self.queue:
            uid, _ = self.queue.popitem()
            await self.collector.collect(uid)
            await self.cluster.deliver()

    def names(self) -> set[str]:
        return {name_of(obj) for resource in RESOURCES for obj in self.server.objects(resource)}

    def find(self, resource: Resource, name: str) -> Object:
        found = self.server.find(resource, name, "n")
        assert found is not None
        return found


@asynccontextmanager
async def family() -> AsyncIterator[World]:
    """A JobSet with a Service and a Job, which has two pods."""
    async with cached_server(NOW, RESOURCES) as cluster:
        world = World(cluster)
        jobset = await world.create(JOBSETS, "jobset")
        await world.create(SERVICES, "service", jobset)
        job = await world.create(JOBS, "job", jobset)
        await world.create(PODS, "pod-0", job)
        await world.create(PODS, "pod-1", job)
        await world.settle()
        world.server.requests.clear()
        yield world


async def test_foreground_deletion_waits_for_the_dependents() -> None:
    """The owner goes last; a pod that is held by a finalizer holds its Job, and that the JobSet."""
    async with family() as world:
        pod = world.find(PODS, "pod-0")
        world.server.add({**pod, "metadata": {**pod["metadata"], "finalizers": ["hold"]}})
        await world.delete(JOBSETS, "jobset", Propagation.FOREGROUND)
        await world.settle()
        assert world.names() == {"jobset", "job", "pod-0"}

        await world.server.patch(PODS, "pod-0", {"metadata": {"finalizers": None}}, "n")
        await world.settle()
        assert world.names() == set()
        assert [name for verb, _, name in world.cluster.writes if verb == "patch"][-2:] == ["job", "jobset"]


async def test_dependent_of_a_lasting_owner_stays() -> None:
    """With two owners the object only loses the reference to the one that is gone."""
    async with family() as world:
        await world.create(PODS, "shared", world.find(JOBS, "job"), world.find(SERVICES, "service"))
        await world.delete(JOBS, "job")
        await world.settle()
        shared = world.find(PODS, "shared")
        assert [reference["name"] for reference in shared["metadata"]["ownerReferences"]] == ["service"]


async def test_owner_that_came_and_went_unseen_with_its_definition_is_looked_up() -> None:
    """Where its kind was served is remembered, though only for references in that version."""
    async with family() as world:
        widgets = Resource("example.com", "v1", "widgets", "Widget", namespaced=True)
        world.collector.serve((*RESOURCES, widgets))
        world.collector.serve(RESOURCES)
        owner = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "w"}}
        await world.create(PODS, "left", owner)
        await world.create(PODS, "kept", {**owner, "apiVersion": "example.com/v2"})
        await world.settle()
        assert "left" not in world.names()
        assert "kept" in world.names()


def test_the_oldest_uid_is_forgotten() -> None:
    """The memory is bounded."""
    uids = RecentUids(limit=2)
    for uid in ("a", "b", "c"):
        uids.add(uid)
    assert [uid in uids for uid in ("a", "b", "c")] == [False, True, True]
