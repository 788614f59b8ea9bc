"""Load: how long the event loop stands still while the objects of a large cluster come in."""

from __future__ import annotations

import asyncio
from functools import partial

from benchmarks.arrivals import Arrivals
from benchmarks.measurement import Feature, Measurement, Unit
from benchmarks.process import Effort
from benchmarks.scenarios.scenario import Scenario, Trial, Variant
from benchmarks.stalls import LoopStalls
from benchmarks.subjects.subject import Loading


async def _measure(trial: Trial, *, loading: Loading) -> list[Measurement]:
    await trial.warm_up("pods")
    workload = await trial.serve("pods", trial.size.objects, loading=loading)
    arrivals, stalls = Arrivals(), LoopStalls(asyncio.get_running_loop())
    start = Effort.now()
    with stalls.watching():
        async with trial.subject.caching(workload, arrivals):
            await arrivals.wait_for_count(trial.size.objects)
            effort = Effort.now().since(start)
            # What the subject does once it has everything belongs to the load.
            await trial.control.wait_for_watch()
            await asyncio.sleep(0)
    return [
        Measurement("longest stall", stalls.longest_seconds, Unit.SECONDS),
        Measurement("longest stall, CPU of the loop", stalls.longest_cpu_seconds, Unit.SECONDS),
        Measurement("time", effort.seconds, Unit.SECONDS),
    ]


LOAD = Scenario(
    "load",
    "Longest stall of the event loop while 8 KB pods are loaded",
    (
        Variant("list in pages", partial(_measure, loading=Loading.PAGES), frozenset({Feature.PAGED_LIST})),
        Variant("list in one piece", partial(_measure, loading=Loading.WHOLE)),
        Variant("WatchList", partial(_measure, loading=Loading.STREAM), frozenset({Feature.STREAMED_LIST})),
    ),
)
