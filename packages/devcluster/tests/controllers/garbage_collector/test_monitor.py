from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from trainer.kube.errors import NotFoundError, TransportError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, Resource
from trainer.kube.selection import Selection
from trainer_devcluster.controllers.garbage_collector import monitor
from trainer_devcluster.controllers.options import ControllerOptions
from trainer_kube_testing import FakeClient, ManualClock, settle

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
METADATA = Selection(metadata_only=True)


class Discovery:
    """Legacy discovery of some resources."""

    def __init__(self, *resources: Resource) -> None:
        self.resources = list(resources)
        self.is_reachable = True

    async def request(self, method: str, path: str) -> Object:
        assert method == "GET"
        if not self.is_reachable:
            raise TransportError("connection refused")
        if path == "/apis":
            versions = {resource.api_version for resource in self.resources if resource.group}
            documents = [{"groupVersion": version} for version in sorted(versions)]
            return {"groups": [{"preferredVersion": each, "versions": [each]} for each in documents]}
        version = path.removeprefix("/apis/").removeprefix("/api/")
        found = [resource for resource in self.resources if resource.api_version == version]
        if not found:
            raise NotFoundError(404, "the server could not find the requested resource")
        verbs = ["delete", "list", "watch"]
        return {
            "resources": [{"name": r.plural, "kind": r.kind, "namespaced": r.namespaced, "verbs": verbs} for r in found]
        }


class Cluster:
    """A cluster with a garbage collector, where the test defines the custom resource."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.client = FakeClient(resources=[WIDGETS], clock=self.clock)
        self.discovery = Discovery(CONFIG_MAPS)
        self.manager = Manager(self.client, clock=self.clock)
        monitor.register(self.manager, self.discovery, ControllerOptions())

    def watched(self) -> set[Resource]:
        """What the collector watches."""
        return {informer.resource for informer in self.manager.cache.informers if informer.selection == METADATA}

    async def define(self) -> None:
        definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        self.discovery.resources.append(WIDGETS)
        self.client.add({**definition, "metadata": {"name": "widgets.example.com"}})
        await settle()

    async def undefine(self) -> None:
        self.discovery.resources.remove(WIDGETS)
        await self.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com")
        await settle()

    async def create_family(self) -> None:
        """A widget and a ConfigMap that it owns."""
        kind = {"apiVersion": "example.com/v1", "kind": "Widget"}
        self.client.add({**kind, "metadata": {"name": "owner", "namespace": "n", "uid": "owner-uid"}})
        owners = [{**kind, "name": "owner", "uid": "owner-uid"}]
        child = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"big": "value"}}
        self.client.add({**child, "metadata": {"name": "child", "namespace": "n", "ownerReferences": owners}})
        await settle()

    def config_maps(self) -> list[str]:
        return [name_of(obj) for obj in self.client.objects(CONFIG_MAPS)]


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    """A cluster whose garbage collector has begun to work."""
    started = Cluster()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(started.manager.run)
        await started.manager.wait_for_start()
        await settle()
        yield started
        tasks.cancel_scope.cancel()


async def test_custom_resources_are_watched_while_they_are_defined() -> None:
    """The informer ends with the definition, dependents go, and both may come again."""
    async with cluster() as it:
        assert it.watched() == {CONFIG_MAPS}
        for _ in range(2):
            await it.define()
            assert it.watched() == {CONFIG_MAPS, WIDGETS}
            await it.create_family()
            assert it.config_maps() == ["child"]

            await it.undefine()
            assert it.watched() == {CONFIG_MAPS}
            assert it.config_maps() == []


async def test_discovery_that_fails_is_repeated() -> None:
    """An API server that is away for a moment does not end the collection."""
    async with cluster() as it:
        it.discovery.is_reachable = False
        await it.define()
        assert it.watched() == {CONFIG_MAPS}
        it.discovery.is_reachable = True
        await it.clock.advance(60)
        assert it.watched() == {CONFIG_MAPS, WIDGETS}
