"""Watch events: what one costs, and what it weighs in the form in which the library hands it out."""

from __future__ import annotations

from benchmarks.arrivals import Arrivals
from benchmarks.measurement import Measurement, Unit
from benchmarks.process import Effort, resident_bytes
from benchmarks.scenarios.scenario import Scenario, Trial, Variant, wait_until_quiet
from benchmarks.server.control import Emission
from benchmarks.subjects.subject import Keeping


async def _measure(trial: Trial) -> list[Measurement]:
    await trial.warm_up("pods")
    events = trial.size.updates
    workload = await trial.serve("pods", events, visible=0, keeping=Keeping.EVENTS)
    arrivals = Arrivals()
    async with trial.subject.caching(workload, arrivals):
        await trial.control.wait_for_watch()
        before, start = resident_bytes(), Effort.now()
        await trial.control.emit(Emission(events, adds=True))
        await arrivals.wait_for_count(events)
        effort = Effort.now().since(start)
        await wait_until_quiet()
        weight = resident_bytes() - before
    return [
        Measurement("RSS per event", weight / events, Unit.BYTES),
        Measurement("CPU per event", effort.cpu_seconds / events, Unit.SECONDS),
        Measurement("events", events / effort.seconds, Unit.PER_SECOND),
    ]


WATCH_EVENTS = Scenario(
    "watch-events",
    "Watch events of 8 KB pods as fast as they are taken, each kept as it is handed out",
    (Variant("pods", _measure),),
)
