"""Reconciles: how many a second, from the work queue alone and from the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

from benchmarks.arrivals import Arrivals
from benchmarks.measurement import Feature, Measurement, Unit
from benchmarks.process import Effort
from benchmarks.scenarios.scenario import Scenario, Trial, Variant
from benchmarks.server.control import Emission
from benchmarks.subjects.subject import ReadAnnotations

NAP = 0.005
"""Seconds that the slow reconciler waits, as one does that sends a request."""

NAPPING_SECONDS = 1.0
"""How long trials of the slow reconciler may take at best."""

WORKERS = (1, 10, 100)


async def _measure_queue(trial: Trial, *, nap: float, workers: int) -> list[Measurement]:
    reconciles, arrivals = _reconciles(nap, workers, most=2 * trial.size.objects), Arrivals()
    workload = await trial.serve("configmaps", 0)
    async with trial.subject.reconciling(workload, _reconciler(arrivals, nap), workers) as enqueue:
        start = Effort.now()
        for number in range(reconciles):
            enqueue("benchmark", f"object-{number}")
        await arrivals.wait_for_count(reconciles)
        effort = Effort.now().since(start)
    return list(_rates(reconciles, effort))


async def _measure_wire(trial: Trial, *, nap: float, workers: int) -> list[Measurement]:
    reconciles, arrivals = _reconciles(nap, workers, most=trial.size.objects), Arrivals()
    # Where each object has a worker of its own, the objects must be as few as the workers; elsewhere they must be
    # different, since changes of an object that waits in a queue become one reconcile.
    objects = min(workers, reconciles) if trial.subject.serves_objects_apart else reconciles
    workload = await trial.serve("configmaps", objects)
    async with trial.subject.reconciling(workload, _reconciler(arrivals, nap), workers):
        await arrivals.wait_for_count(objects)
        await trial.control.wait_for_watch()
        start = Effort.now()
        await trial.control.emit(Emission(reconciles))
        await arrivals.wait_for_count(objects + reconciles)
        effort = Effort.now().since(start)
    return list(_rates(reconciles, effort))


def _reconciles(nap: float, workers: int, *, most: int) -> int:
    return min(most, round(workers / nap * NAPPING_SECONDS)) if nap else most


def _reconciler(arrivals: Arrivals, nap: float) -> _Reconciler:
    return _Napping(arrivals, nap) if nap else _Reconciler(arrivals)


class _Reconciler:
    """Does nothing."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals

    async def __call__(self, read: ReadAnnotations) -> None:  # noqa: ARG002
        self._arrivals.step()


class _Napping(_Reconciler):
    """Waits."""

    def __init__(self, arrivals: Arrivals, nap: float) -> None:
        super().__init__(arrivals)
        self._nap = nap

    async def __call__(self, read: ReadAnnotations) -> None:
        await asyncio.sleep(self._nap)
        await super().__call__(read)


def _rates(reconciles: int, effort: Effort) -> Iterator[Measurement]:
    yield Measurement("reconciles", reconciles / effort.seconds, Unit.PER_SECOND)
    yield Measurement("CPU per reconcile", effort.cpu_seconds / reconciles, Unit.SECONDS)


def _variants() -> Iterator[Variant]:
    for nap, what in ((0.0, "empty"), (NAP, f"{NAP * 1000:.0f} ms")):
        for workers in WORKERS:
            name = f"{what}, {workers} worker{'s' if workers > 1 else ''}"
            concurrency = frozenset({Feature.CONCURRENCY} if workers > 1 else ())
            from_queue = partial(_measure_queue, nap=nap, workers=workers)
            yield Variant(f"{name}, from the queue", from_queue, concurrency | {Feature.WORK_QUEUE})
            yield Variant(f"{name}, from the wire", partial(_measure_wire, nap=nap, workers=workers), concurrency)


RECONCILES = Scenario("reconciles", "Reconciles a second of ConfigMaps", tuple(_variants()))
