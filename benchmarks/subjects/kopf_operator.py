"""kopf: an operator with one event handler, which also keeps the bodies where objects are to be kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.arrivals import Arrivals
from benchmarks.measurement import Feature
from benchmarks.subjects.running import running
from benchmarks.subjects.subject import Loading, Reconcile, Workload

PAGE_SIZE = 500

IDLE_SECONDS = 1.0
"""After so long without an event the task of an object ends; kopf's default of 5 s would only prolong the trials."""


class KopfOperator:
    """`kopf` with `on.event` handlers, its cheapest: those for creation and update also patch each object."""

    name = "kopf"
    distribution = "kopf"
    lacks: Mapping[Feature, str] = {Feature.WORK_QUEUE: "work comes from watch events only"}
    serves_objects_apart = True

    @asynccontextmanager
    async def caching(self, workload: Workload, arrivals: Arrivals) -> AsyncIterator[None]:
        """A dict that the handler fills.

        Not kopf's index, made for this: with one, the start takes time that grows with the square of the number of
        objects (1,000 pods 6 s, 2,000 pods 27 s on two cores with kopf 1.45), too long for 10,000.
        """
        objects: dict[tuple[str, str], Mapping[str, Any]] = {}

        async def keep(*, namespace: str, name: str, body: Mapping[str, Any], **_: Any) -> None:
            objects[namespace, name] = dict(body)
            arrivals.saw(body["metadata"]["resourceVersion"])

        async with _operator(workload, keep):
            yield

    @asynccontextmanager
    async def reconciling(
        self,
        workload: Workload,
        reconcile: Reconcile,
        workers: int,  # noqa: ARG002 - one for each object
    ) -> AsyncIterator[Callable[[str, str], None]]:
        """Reconciles in event handlers."""

        async def handle(*, annotations: Mapping[str, str], **_: Any) -> None:
            await reconcile(lambda: annotations)

        def refuse(namespace: str, name: str) -> None:
            raise NotImplementedError(f"cannot enqueue {namespace}/{name}: there is no queue")

        async with _operator(workload, handle):
            yield refuse


@asynccontextmanager
async def _operator(workload: Workload, handler: Callable[..., Awaitable[None]]) -> AsyncIterator[None]:
    import kopf  # noqa: PLC0415 - see Subject

    registry, settings, stop = kopf.OperatorRegistry(), kopf.OperatorSettings(), asyncio.Event()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.watching.chunk_size = PAGE_SIZE if workload.loading is Loading.PAGES else None
    settings.watching.initial_streaming = workload.loading is Loading.STREAM

    async def log_in(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=workload.server)

    kopf.on.login(registry=registry)(log_in)
    kopf.on.event("", "v1", workload.resource, registry=registry)(handler)
    main = kopf.operator(registry=registry, settings=settings, standalone=True, clusterwide=True, stop_flag=stop)
    # Cancelled from outside, it leaves tasks behind that do not end.
    async with running(main, stop.set):
        yield
