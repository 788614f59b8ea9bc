"""Memory: what the objects of a resource weigh once they are cached, while they change, and after a relist."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.arrivals import Arrivals
from benchmarks.measurement import Feature, Measurement, Unit
from benchmarks.process import Effort, peak_bytes, reset_peak, resident_bytes
from benchmarks.scenarios.scenario import Scenario, Trial, Variant, wait_until_quiet
from benchmarks.server.control import Disturbance, Emission
from benchmarks.subjects.subject import Loading


async def _measure(trial: Trial, *, resource: str, loading: Loading) -> list[Measurement]:
    await trial.warm_up(resource)
    objects, updates = trial.size.objects, trial.size.updates
    workload = await trial.serve(resource, objects, loading=loading)
    arrivals, weight = Arrivals(), _Weight(objects)
    found: list[Measurement] = []

    start = Effort.now()
    async with trial.subject.caching(workload, arrivals):
        await arrivals.wait_for_count(objects)
        found += _effort("init", Effort.now().since(start), objects, "object")
        found += await weight.measure("init")
        await trial.control.wait_for_watch()

        start = Effort.now()
        await arrivals.wait_for_version(await trial.control.emit(Emission(updates)))
        found += _effort("updates", Effort.now().since(start), updates, "update")
        found += await weight.measure("updates")

        start = Effort.now()
        disturbed = await trial.control.disturb(Disturbance(compacts=True))
        await arrivals.wait_for_version(disturbed.version)
        found += _effort("relist", Effort.now().since(start), objects, "object")
        found += await weight.measure("relist")
    return found


class _Weight:
    """Bytes beyond those that the process had at the start, per object."""

    def __init__(self, objects: int) -> None:
        self._objects = objects
        self._start = resident_bytes()
        reset_peak()

    async def measure(self, phase: str) -> list[Measurement]:
        peak = peak_bytes()
        await wait_until_quiet()
        resident = resident_bytes()
        reset_peak()
        return [
            Measurement(f"{phase}: RSS per object", (resident - self._start) / self._objects, Unit.BYTES),
            Measurement(f"{phase}: peak RSS per object", (peak - self._start) / self._objects, Unit.BYTES),
        ]


def _effort(phase: str, effort: Effort, count: int, what: str) -> Iterator[Measurement]:
    yield Measurement(f"{phase}: CPU per {what}", effort.cpu_seconds / count, Unit.SECONDS)
    yield Measurement(f"{phase}: time", effort.seconds, Unit.SECONDS)


MEMORY = Scenario(
    "memory",
    "Cached objects: initial list, updates of half of them, relist after 410",
    (
        Variant("ConfigMaps, list", partial(_measure, resource="configmaps", loading=Loading.PAGES)),
        Variant("pods, list", partial(_measure, resource="pods", loading=Loading.PAGES)),
        Variant(
            "pods, WatchList",
            partial(_measure, resource="pods", loading=Loading.STREAM),
            frozenset({Feature.STREAMED_LIST}),
        ),
    ),
)
