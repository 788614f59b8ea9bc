"""kubernetes_asyncio: the loop over `Watch.stream` with typed objects that its documentation shows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.arrivals import Arrivals
from benchmarks.measurement import Feature
from benchmarks.subjects.running import running
from benchmarks.subjects.subject import Keeping, Reconcile, Workload

_METHODS = {"pods": "list_pod_for_all_namespaces", "configmaps": "list_config_map_for_all_namespaces"}


class TypedWatch:
    """`kubernetes_asyncio.watch`, which brings neither cache nor queue: what it is given goes into a dict or a list."""

    name = "kubernetes_asyncio"
    distribution = "kubernetes_asyncio"
    lacks: Mapping[Feature, str] = {
        Feature.PAGED_LIST: "a watch from the beginning sends all objects as events",
        Feature.STREAMED_LIST: "Watch knows no initial-events-end bookmark",
        Feature.WORK_QUEUE: "it has no work queue",
        Feature.CONCURRENCY: "a watch is one loop, which handles one event after the other",
    }
    serves_objects_apart = False

    @asynccontextmanager
    async def caching(self, workload: Workload, arrivals: Arrivals) -> AsyncIterator[None]:
        """A dict of typed objects, or a list of events."""
        objects: dict[tuple[str, str], Any] = {}
        events: list[Any] = []

        async def keep(event: Any) -> None:
            metadata = event["object"].metadata
            if workload.keeping is Keeping.EVENTS:
                events.append(event)
            else:
                objects[metadata.namespace, metadata.name] = event["object"]
            arrivals.saw(metadata.resource_version)

        async with running(_watch(workload, keep)):
            yield

    @asynccontextmanager
    async def reconciling(
        self,
        workload: Workload,
        reconcile: Reconcile,
        workers: int,  # noqa: ARG002 - one, see `lacks`
    ) -> AsyncIterator[Callable[[str, str], None]]:
        """Reconciles in the loop."""

        async def handle(event: Any) -> None:
            await reconcile(lambda: event["object"].metadata.annotations)

        def refuse(namespace: str, name: str) -> None:
            raise NotImplementedError(f"cannot enqueue {namespace}/{name}: there is no queue")

        async with running(_watch(workload, handle)):
            yield refuse


async def _watch(workload: Workload, handle: Callable[[Any], Awaitable[None]]) -> None:
    """Watch forever; the library raises on a broken connection and on 410, so starting again is up to its users."""
    import aiohttp  # noqa: PLC0415 - see Subject
    from kubernetes_asyncio import client, watch  # noqa: PLC0415 - see Subject

    async with client.ApiClient(client.Configuration(host=workload.server)) as api:
        method = getattr(client.CoreV1Api(api), _METHODS[workload.resource])
        while True:
            try:
                async with watch.Watch() as stream:
                    async for event in stream.stream(method):
                        await handle(event)
            except (client.ApiException, aiohttp.ClientError):
                continue
