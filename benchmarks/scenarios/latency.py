"""Latency: from the moment at which the API server writes an event to the first line of the reconcile."""

from __future__ import annotations

import time
from statistics import quantiles

from benchmarks.arrivals import Arrivals
from benchmarks.measurement import Measurement, Unit
from benchmarks.scenarios.scenario import Scenario, Trial, Variant
from benchmarks.server.control import Emission
from benchmarks.server.objects import SENT_AT
from benchmarks.subjects.subject import ReadAnnotations

EVENTS_PER_SECOND = 200.0
"""A busy cluster; slow enough for every subject, so that nobody's backlog is measured."""


async def _measure(trial: Trial) -> list[Measurement]:
    events = max(int(trial.size.seconds * EVENTS_PER_SECOND), 2)
    # Each event is about another object: two about one that waits in a queue become one reconcile.
    objects = events
    workload = await trial.serve("pods", objects)
    arrivals, nanoseconds = Arrivals(), list[int]()

    async def reconcile(read: ReadAnnotations) -> None:
        moment = time.monotonic_ns()
        nanoseconds.append(moment - int(read()[SENT_AT]))
        arrivals.step()

    async with trial.subject.reconciling(workload, reconcile, 1):
        await arrivals.wait_for_count(objects)
        await trial.control.wait_for_watch()
        nanoseconds.clear()
        await trial.control.emit(Emission(events, per_second=EVENTS_PER_SECOND))
        await arrivals.wait_for_count(objects + events)
    hundredths = quantiles(nanoseconds, n=100)
    return [
        Measurement("p50", hundredths[49] / 1e9, Unit.SECONDS),
        Measurement("p99", hundredths[98] / 1e9, Unit.SECONDS),
        Measurement("longest", max(nanoseconds) / 1e9, Unit.SECONDS),
    ]


LATENCY = Scenario(
    "latency",
    f"Wire to reconcile, {EVENTS_PER_SECOND:.0f} changes of 8 KB pods a second, 1 worker",
    (Variant("pods", _measure),),
)
