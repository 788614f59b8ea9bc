"""Loop lag: how late the event loop runs what is due, and what it was doing when it stood still.

One blocking call stalls everything that shares the loop: watches, the renewal of the lease, probes. A task measures the
delay of a timer; a thread looks whether the task still turns, and if not, logs where the loop's thread is at that
moment. All times are real ones, also where the machinery runs on a clock of a test.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from types import FrameType

import anyio
import anyio.to_thread

from trainer.kube.errors import KubeError
from trainer.kube.logger import get_logger
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.processes import LoopSeries

log = get_logger(__name__)

_FRAMES = 12
"""Innermost frames of a stalled loop that are logged."""


INTERVAL = 1.0
"""Seconds between measurements, since wake-ups are most of what an idle process takes."""
WARN_AFTER = 0.5
"""Seconds after a measurement is due at which the log says where the loop hangs: half a probe's timeout."""
UNHEALTHY_AFTER = 5.0
"""Seconds of standstill that fail the health check: half the renew deadline of a leader."""
UNHEALTHY_FOR = 30.0
"""Seconds for which the check fails after such a standstill, so that a probe that comes after it sees it. The kubelet
restarts a container after three failures, 10 s or more apart: only standstills that repeat make it do so."""


class LoopLagWatch:
    """Watches the event loop on which it runs; the metrics have the series of `LoopSeries`."""

    def __init__(self, metrics: Metrics) -> None:
        self._series = metrics.series(LoopSeries)
        self._due = 0.0
        self._stood_still = 0.0
        self._unhealthy_until = 0.0
        self._worst = 0.0
        self._stop = threading.Event()

    async def check(self) -> None:
        """Health check: fails while the loop stands still time and again.

        Raises:
            KubeError: says for how long it stood still.
        """
        if time.monotonic() < self._unhealthy_until:
            raise KubeError(f"the event loop stood still for {self._worst:.1f} s: a blocking call runs on it")

    async def run(self) -> None:
        """Watch until cancelled; call it once."""
        self._due = time.monotonic() + INTERVAL
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_in_thread, asyncio.get_running_loop(), threading.get_ident())
            try:
                await self._measure()
            finally:
                self._stop.set()

    async def _watch_in_thread(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        # A limiter of its own, since it must not wait for the threads of others. Abandoned for the moment that it takes
        # to see that it shall stop.
        limiter = anyio.CapacityLimiter(1)
        await anyio.to_thread.run_sync(self._watch, loop, thread, limiter=limiter, abandon_on_cancel=True)

    async def _measure(self) -> None:
        while True:
            await anyio.sleep(max(self._due - time.monotonic(), 0))
            now = time.monotonic()
            lag = max(now - self._due, 0.0)
            self._series.lag_seconds.observe(lag)
            if lag >= WARN_AFTER:
                self._stood_still = lag
            if lag >= UNHEALTHY_AFTER:
                self._worst = max(lag, self._worst) if now < self._unhealthy_until else lag
                self._unhealthy_until = now + UNHEALTHY_FOR
            # Not an interval after it was due: what was missed during a standstill is not made up for.
            self._due = now + INTERVAL

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        """The thread beside the loop: logs each standstill while it lasts, and its end."""
        stalled: float | None = None
        while True:
            due, waited_from = self._due, time.monotonic()
            if stalled is not None and due != stalled:
                log.warning("event loop turns again", stood_still=round(self._stood_still, 3))
                stalled = None
            # Until a standstill could be reported: a loop that turns takes one wake-up of this thread in each interval.
            pause = max(due + WARN_AFTER - waited_from, 0) if stalled is None else WARN_AFTER / 2
            if self._stop.wait(pause):
                return
            now = time.monotonic()
            overdue = now - due
            if stalled is not None or self._due != due or overdue < WARN_AFTER:
                continue
            stalled = due
            self._series.stalls.inc()
            if now - waited_from > pause + WARN_AFTER / 2:
                # This thread was late itself, so it is not the loop's code that is to blame.
                log.warning("process stood still", seconds=round(overdue, 3))
            else:
                self._report(loop, thread, overdue)

    def _report(self, loop: asyncio.AbstractEventLoop, thread: int, overdue: float) -> None:
        frame = sys._current_frames().get(thread)  # noqa: SLF001 - the documented way, despite its name
        task = asyncio.current_task(loop)
        stack = _describe(frame)
        log.warning(
            "event loop stands still: a blocking call runs on it, move it to a thread",
            seconds=round(overdue, 3),
            task=None if task is None else task.get_name(),
            where=stack[-1] if stack else None,
            frames=stack,  # `stack` must be a text where logs are rendered for people
        )


def _describe(frame: FrameType | None) -> list[str]:
    """The innermost frames, the outermost of them first; reads no source files."""
    frames = traceback.StackSummary.extract(traceback.walk_stack(frame), limit=_FRAMES, lookup_lines=False)
    return [f"{entry.filename}:{entry.lineno} {entry.name}" for entry in reversed(frames)]
