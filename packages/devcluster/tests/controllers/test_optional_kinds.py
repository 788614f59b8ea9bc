"""Kinds that come and go under a running manager, on the real API server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio

from packages.devcluster.tests.controllers.cluster import NAMESPACE, TIMEOUT, dev_cluster
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.handlers import own_key
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from trainer_devcluster.cluster import install_definition
from trainer_kube_testing import ManualClock

GANGS = Resource("gang.example.com", "v1", "gangs", "Gang")
SCHEMA: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gangs.gang.example.com"},
    "spec": {
        "group": GANGS.group,
        "scope": "Namespaced",
        "names": {"plural": GANGS.plural, "kind": GANGS.kind},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}


async def test_definition_that_is_installed_and_deleted_while_a_manager_runs(tmp_path: Path) -> None:
    """The manager starts without the kind, reconciles its objects from when it is served, and is always well."""
    clock = ManualClock()
    seen: list[ObjectKey] = []

    async def reconcile(key: ObjectKey) -> None:
        seen.append(key)

    async def until(condition: Callable[[], bool]) -> None:
        with anyio.fail_after(TIMEOUT):
            while not condition():
                assert manager.cache.problem is None
                await clock.advance(5)
                await anyio.sleep(0.01)

    async with dev_cluster(tmp_path) as cluster:
        manager = Manager(cluster.client, clock=clock)
        Controller("gangs", manager, reconcile).watches(GANGS, own_key, optional=True)
        informer = manager.informer(GANGS, optional=True)

        async def come_and_go(key: ObjectKey) -> None:
            await install_definition(cluster.client, DEFINITION)
            await until(lambda: informer.is_served)
            await cluster.create(GANGS, {"metadata": {"name": key.name}})
            await until(lambda: key in seen)
            await cluster.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "gangs.gang.example.com")
            await until(lambda: not informer.is_served)
            assert informer.lister.list() == []

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await manager.wait_for_start()
            assert not informer.is_served
            await come_and_go(ObjectKey(NAMESPACE, "first"))
            await come_and_go(ObjectKey(NAMESPACE, "second"))
            tasks.cancel_scope.cancel()
