"""What a scenario is, and what it gets to work with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from benchmarks.arrivals import Arrivals
from benchmarks.measurement import Feature, Measurement
from benchmarks.server.control import Control, Reset
from benchmarks.subjects.subject import Keeping, Loading, Subject, Workload

WARM_UP_OBJECTS = 10
QUIET_TASKS = 50
QUIET_TIMEOUT = 15.0


@dataclass(frozen=True, slots=True)
class Size:
    """How much work a trial is."""

    objects: int = 10_000
    """Objects in the API server. Default: 10,000, as in the memory benchmark of kube-rs."""
    seconds: float = 5.0
    """Length of the trials that follow a clock. Default: 5."""
    repetitions: int = 5
    """How often what happens once is repeated for a median. Default: 5."""

    @property
    def updates(self) -> int:
        """Changes in the steady state: half as many as there are objects, as in the memory benchmark of kube-rs."""
        return max(self.objects // 2, 1)


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a scenario with one subject, alone in its process."""

    subject: Subject
    control: Control
    size: Size

    async def serve(
        self,
        resource: str,
        objects: int,
        *,
        visible: int | None = None,
        loading: Loading = Loading.PAGES,
        keeping: Keeping = Keeping.OBJECTS,
    ) -> Workload:
        """Let the API server serve these objects in this way; returns what to give to the subject."""
        reset = Reset(
            resource,
            objects,
            visible,
            streams_lists=loading is Loading.STREAM,
            ignores_limit_at_zero=loading is Loading.WHOLE,
        )
        await self.control.reset(reset)
        return Workload(self.control.url, resource, loading, keeping)

    async def warm_up(self, resource: str) -> None:
        """Let the subject import and allocate what it needs at any size."""
        arrivals = Arrivals()
        workload = await self.serve(resource, WARM_UP_OBJECTS)
        async with self.subject.caching(workload, arrivals):
            await arrivals.wait_for_count(WARM_UP_OBJECTS)


async def wait_until_quiet() -> None:
    """Wait until the tasks are gone that the subject runs for single objects for a while."""
    async with asyncio.timeout(QUIET_TIMEOUT):
        while len(asyncio.all_tasks()) > QUIET_TASKS:  # noqa: ASYNC110 - other libraries' tasks set no event of ours
            await asyncio.sleep(0.05)


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a scenario."""

    name: str
    run: Callable[[Trial], Awaitable[Sequence[Measurement]]]
    needs: frozenset[Feature] = frozenset()
    """What a subject must have. Default: nothing beyond watching."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A question about all subjects."""

    name: str
    summary: str
    variants: tuple[Variant, ...]
