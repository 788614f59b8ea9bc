from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.devcluster.controllers.fake_server import FakeServer
from trainer.devcluster.controllers.garbage_collector.collector import GarbageCollector
from trainer.kube.client import DeleteOptions, Propagation
from trainer.kube.objects import name_of, uid_of
from trainer.kube.resource import JOBS, JOBSETS, PODS, SERVICES

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

RESOURCES = (JOBSETS, JOBS, PODS, SERVICES)


class Feed:
    """Passes what an informer shows to the collector."""

    def __init__(self, collector: GarbageCollector, resource: Resource) -> None:
        self._collector = collector
        self._resource = resource

    def on_add(self, obj: Object, *, initial: bool) -> None:
        self._collector.observe(self._resource, obj)

    def on_update(self, old: Object, new: Object) -> None:
        self._collector.observe(self._resource, new)

    def on_delete(self, obj: Object) -> None:
        self._collector.forget(uid_of(obj))


class World:
    """A fake server and a collector that works when the test says so."""

    def __init__(self) -> None:
        self.server = FakeServer()
        self.queue: dict[str, None] = {}
        self.collector = GarbageCollector(self.server.client, lambda uid: self.queue.update({uid: None}))
        self.collector.serve(RESOURCES)
        for resource in RESOURCES:
            self.server.informer(resource).add_handler(Feed(self.collector, resource))

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
        created = await self.server.create(
            resource, {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": fields}
        )
        self.server.deliver()
        return created

    async def delete(self, resource: Resource, name: str, propagation: Propagation = Propagation.BACKGROUND) -> None:
        await self.server.delete(resource, name, "n", DeleteOptions(propagation=propagation))

    async def settle(self) -> None:
        """Let the collector work until it has nothing left to do."""
        self.server.deliver()
        while self.queue:
            uid, _ = self.queue.popitem()
            await self.collector.collect(uid)
            self.server.deliver()

    def names(self) -> set[str]:
        return {name_of(obj) for resource in RESOURCES for obj in self.server.all(resource)}


@pytest.fixture
async def world() -> World:
    """A JobSet with a Service and a Job, which has two pods."""
    world = World()
    jobset = await world.create(JOBSETS, "jobset")
    await world.create(SERVICES, "service", jobset)
    job = await world.create(JOBS, "job", jobset)
    await world.create(PODS, "pod-0", job)
    await world.create(PODS, "pod-1", job)
    await world.settle()
    world.server.requests.clear()
    return world


async def test_what_has_an_owner_stays(world: World) -> None:
    """Nothing is requested while all owners are there."""
    await world.settle()
    assert world.names() == {"jobset", "service", "job", "pod-0", "pod-1"}
    assert world.server.requests == []


async def test_background_deletion_takes_all_dependents(world: World) -> None:
    """Dependents of dependents go as well."""
    await world.delete(JOBSETS, "jobset")
    await world.settle()
    assert world.names() == set()


async def test_foreground_deletion_waits_for_the_dependents(world: World) -> None:
    """The owner goes last; a pod that is held by a finalizer holds its Job, and that the JobSet."""
    pod = world.server.find(PODS, "pod-0")
    assert pod is not None
    world.server.put(PODS, {**pod, "metadata": {**pod["metadata"], "finalizers": ["hold"]}})
    await world.delete(JOBSETS, "jobset", Propagation.FOREGROUND)
    await world.settle()
    assert world.names() == {"jobset", "job", "pod-0"}

    await world.server.patch(PODS, "pod-0", {"metadata": {"finalizers": None}}, "n")
    await world.settle()
    assert world.names() == set()
    assert [name for verb, _, name in world.server.requests if verb == "patch"][-2:] == ["job", "jobset"]


async def test_orphaning_deletion_keeps_the_dependents(world: World) -> None:
    """They lose the owner reference and live on."""
    await world.delete(JOBS, "job", Propagation.ORPHAN)
    await world.settle()
    assert world.names() == {"jobset", "service", "pod-0", "pod-1"}
    assert all("ownerReferences" not in pod["metadata"] for pod in world.server.all(PODS))


async def test_dependent_of_a_lasting_owner_stays(world: World) -> None:
    """With two owners the object only loses the reference to the one that is gone."""
    owners = [obj for obj in (world.server.find(JOBS, "job"), world.server.find(SERVICES, "service")) if obj]
    await world.create(PODS, "shared", *owners)
    await world.delete(JOBS, "job")
    await world.settle()
    shared = world.server.find(PODS, "shared")
    assert shared is not None
    assert [reference["name"] for reference in shared["metadata"]["ownerReferences"]] == ["service"]


async def test_owner_that_was_never_there_is_looked_up(world: World) -> None:
    """A dangling reference, or one to a re-created owner of the same name, does not keep an object."""
    job = world.server.find(JOBS, "job")
    assert job is not None
    stale = {**job, "metadata": {**job["metadata"], "uid": "uid of a predecessor"}}
    await world.create(PODS, "dangling", stale)
    await world.settle()
    assert world.server.find(PODS, "dangling") is None
    assert world.server.find(PODS, "pod-0") is not None


async def test_owner_that_the_cache_has_not_seen_yet_counts(world: World) -> None:
    """The watches of different resources are not ordered, so the server is asked before anything is deleted."""
    late = await world.server.create(
        JOBSETS, {"apiVersion": JOBSETS.api_version, "kind": "JobSet", "metadata": {"name": "late", "namespace": "n"}}
    )
    child = child_of(late)
    world.collector.observe(JOBS, child)
    await world.collector.collect("child-uid")
    assert ("delete", "jobs", "child") not in world.server.requests


async def test_owner_of_an_unknown_kind_keeps_its_dependents(world: World) -> None:
    """Whether such an owner exists cannot be told; it is looked at again when the kind is served."""
    stranger = {"apiVersion": "example.com/v1", "kind": "Stranger", "metadata": {"name": "s", "uid": "s"}}
    await world.create(PODS, "kept", stranger)
    await world.settle()
    assert world.server.find(PODS, "kept") is not None


def child_of(owner: Object) -> Object:
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name_of(owner), "uid": uid_of(owner)}
    return {"metadata": {"name": "child", "namespace": "n", "uid": "child-uid", "ownerReferences": [reference]}}
