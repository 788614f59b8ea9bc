"""Ours: manager, informer and controller, connected by a kubeconfig as its users connect."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import msgspec

from benchmarks.arrivals import Arrivals
from benchmarks.measurement import Feature
from benchmarks.subjects.running import running
from benchmarks.subjects.subject import Reconcile, Workload
from trainer.kube import Lister, Manager, Object, ObjectKey, Resource
from trainer.kube.cache.cached_object import CachedObject


class TrainerKube:
    """`trainer.kube`."""

    name = "trainer.kube"
    distribution = "trainer-operator"
    lacks: Mapping[Feature, str] = {}
    serves_objects_apart = False

    @asynccontextmanager
    async def caching(self, workload: Workload, arrivals: Arrivals) -> AsyncIterator[None]:
        """An informer with a handler that only counts."""
        async with _manager(workload.server) as manager:
            manager.informer(_resource(workload)).add_handler(_Counting(arrivals))
            async with running(manager.run()):
                yield

    @asynccontextmanager
    async def reconciling(
        self, workload: Workload, reconcile: Reconcile, workers: int
    ) -> AsyncIterator[Callable[[str, str], None]]:
        """A controller whose reconciles read the cache."""
        from trainer.kube import Controller, ObjectKey  # noqa: PLC0415 - see Subject

        resource = _resource(workload)
        async with _manager(workload.server) as manager:
            lister = manager.informer(resource).lister

            async def reconcile_key(key: ObjectKey) -> None:
                await reconcile(partial(_annotations, lister, key))

            controller = Controller("benchmark", manager, reconcile_key, max_concurrent_reconciles=workers)
            controller.reconciles(resource)
            async with running(manager.run()):
                await manager.wait_for_start()
                yield lambda namespace, name: controller.enqueue(ObjectKey(namespace, name))


class _Counting:
    """Handler."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:  # noqa: ARG002
        self._arrivals.saw(obj.resource_version)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:  # noqa: ARG002
        self._arrivals.saw(new.resource_version)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:
        pass


def _annotations(lister: Lister, key: ObjectKey) -> Mapping[str, str]:
    from trainer.kube.objects import annotations_of  # noqa: PLC0415 - see Subject

    obj = lister.get(key)
    return {} if obj is None else annotations_of(obj)


def _resource(workload: Workload) -> Resource:
    from trainer.kube.resource import CONFIG_MAPS, PODS  # noqa: PLC0415 - see Subject

    return {resource.plural: resource for resource in (PODS, CONFIG_MAPS)}[workload.resource]


@asynccontextmanager
async def _manager(server: str) -> AsyncIterator[Manager]:
    from trainer.kube import ConnectionOptions, Manager, configure_logging, connect  # noqa: PLC0415 - see Subject

    configure_logging(level="error")
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = Path(directory, "config")
        await anyio.Path(kubeconfig).write_bytes(msgspec.json.encode(_kubeconfig(server)))
        async with connect(ConnectionOptions(kubeconfig=kubeconfig)) as client:
            yield Manager(client)


def _kubeconfig(server: str) -> Object:
    name = "benchmark"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
