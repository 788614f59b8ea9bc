"""Recovery: from the end of a watch until the user's code sees a change that was made while none was open."""

from __future__ import annotations

from functools import partial
from statistics import median

from benchmarks.arrivals import Arrivals
from benchmarks.measurement import Measurement, Unit
from benchmarks.scenarios.scenario import Scenario, Trial, Variant
from benchmarks.server.control import Disturbance, Emission


async def _measure(trial: Trial, *, disturbance: Disturbance) -> list[Measurement]:
    seconds = [await _recover(trial, disturbance) for _ in range(trial.size.repetitions)]
    return [
        Measurement("median", median(seconds), Unit.SECONDS),
        Measurement("longest", max(seconds), Unit.SECONDS),
    ]


async def _recover(trial: Trial, disturbance: Disturbance) -> float:
    """One disturbance of a new watch: what happens once in hours must not meet the backoff of the one before."""
    objects, arrivals = max(trial.size.objects // 10, 1), Arrivals()
    workload = await trial.serve("configmaps", objects)
    async with trial.subject.caching(workload, arrivals):
        await arrivals.wait_for_count(objects)
        await trial.control.wait_for_watch()
        # A watch that has shown nothing is rightly taken for a failure by a careful client.
        await arrivals.wait_for_version(await trial.control.emit(Emission(1)))
        disturbed = await trial.control.disturb(disturbance)
        await arrivals.wait_for_version(disturbed.version)
        return arrivals.newest_at - disturbed.moment


RECOVERY = Scenario(
    "recovery",
    "Until a change is seen that was made while the watch was broken",
    (
        Variant("watch ended by the server", partial(_measure, disturbance=Disturbance(is_orderly=True))),
        Variant("connection dropped", partial(_measure, disturbance=Disturbance())),
        Variant("410, history compacted", partial(_measure, disturbance=Disturbance(compacts=True))),
    ),
)
