"""Work queue: which keys are to be looked at, each by one worker at a time.

A key is in at most one of two places besides waiting for a time: *ready* (to be handed out) and *processing* (handed
out, not yet `done`). Adding a key that is processing marks it, and `done` makes it ready again. Hence two workers never
have the same key, and no change is lost: an add during processing leads to another round.

Backoff is per key. There is no limit shared by all keys, which would let many failing ones delay the healthy, and no
other limiter of client-go's (fast then slow, the slowest of several), which nothing here has needed. How often
a key has failed is known for as long as the queue has the key: a key that is done and not to be looked at again is
forgotten altogether, so that nothing grows with the number of keys ever seen.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

import anyio
import anyio.lowlevel

from trainer.kube.backoff import Backoff
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import KubeError
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.controllers import QueueMetrics
from trainer.kube.queue.delayed_keys import DelayedKeys
from trainer.kube.queue.ready_keys import ReadyKeys

K = TypeVar("K", bound=Hashable)

LOW_PRIORITY = -100
"""Priority of keys of the initial list and of unchanged objects, so that new changes overtake their backlog."""

RETRY = Backoff(initial=0.005, maximum=1000.0)
"""The backoff of controller-runtime's work queue: 5 ms, doubling to about a quarter of an hour."""

_TURN = 0.001
"""Seconds for which getters that never have to wait may keep the event loop, before other tasks get a turn."""


class ShutDown(KubeError):  # noqa: N818 - a signal to the worker, not a failure
    """The queue is shut down and empty: the worker ends."""


class _Round(NamedTuple):
    """One delivery of a key to a worker, or the request for one."""

    priority: int
    since: float


class _Alarm(NamedTuple):
    """The getter that keeps the time of the first delayed key for all."""

    getter: asyncio.Future[None]
    due: float


class WorkQueue(Generic[K]):
    """Keys by priority (higher first), then in order of arrival; for one event loop.

    Args:
        name: label of the series, and for messages.
        clock: for delays, backoff and durations.
        metrics: where adds, retries and durations are counted.
    """

    def __init__(self, name: str, *, clock: Clock, metrics: Metrics) -> None:
        self.name = name
        self._clock = clock
        self._metrics = QueueMetrics(metrics, name)
        self._ready: ReadyKeys[K] = ReadyKeys()
        self._delayed: DelayedKeys[K] = DelayedKeys()
        self._processing: dict[K, _Round] = {}
        self._dirty: dict[K, _Round] = {}
        self._failures: dict[K, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._alarm: _Alarm | None = None
        self._turn_ends = 0.0
        self._is_shut_down = False
        self._drained = anyio.Event()
        self._metrics.observe(self)

    def __len__(self) -> int:
        """Number of keys that are ready or must be processed again; delayed ones do not count."""
        return len(self._ready) + len(self._dirty)

    def add(self, key: K, priority: int | None = None) -> None:
        """Have the key processed soon; a pending delay of it is void.

        The highest priority asked for wins; default: that of the round in progress, else 0. Ignored after `shut_down`.
        """
        if self._is_shut_down:
            return
        running = self._processing.get(key)
        if priority is None:
            priority = 0 if running is None else running.priority
        if self._delayed:
            delayed = self._delayed.discard(key)
            if delayed is not None:
                priority = max(priority, delayed)
        now = self._clock.monotonic()
        if running is None:
            if self._ready.put(key, priority, now):
                self._metrics.adds.inc()
                self._wake()
            return
        dirty = self._dirty.get(key)
        if dirty is None:
            self._dirty[key] = _Round(priority, now)
            self._metrics.adds.inc()
        elif dirty.priority < priority:
            self._dirty[key] = dirty._replace(priority=priority)

    def add_after(self, key: K, seconds: float, priority: int | None = None) -> None:
        """Have the key processed after a delay; if it is due earlier anyway, that stays."""
        if self._is_shut_down:
            return
        if seconds > 0:
            self._metrics.retries.inc()
        if seconds <= 0 or key in self._ready or key in self._dirty:
            self.add(key, priority)
            return
        if priority is None:
            running = self._processing.get(key)
            priority = 0 if running is None else running.priority
        due = self._clock.monotonic() + seconds
        self._delayed.put(key, due, priority)
        if self._alarm is None:
            self._wake()
        elif due < self._alarm.due and not self._alarm.getter.done():
            self._alarm.getter.set_result(None)

    def add_rate_limited(self, key: K, priority: int | None = None) -> None:
        """Have the key processed after a delay that doubles with each call until `forget`; call it before `done`."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, RETRY.pause(failures), priority)

    def forget(self, key: K) -> None:
        """The key was processed with success: its next failure waits the shortest time again."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often the key was added rate-limited since it was last forgotten."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """Take the next key; the caller must call `done` with it.

        Does not give way to other tasks each time, only when there is nothing ready or a millisecond has gone by.

        Raises:
            ShutDown: after `shut_down`, once no key is ready.
        """
        # The processor's time is meant, which no injected clock measures.
        if time.perf_counter() > self._turn_ends:
            await anyio.lowlevel.checkpoint()
            self._turn_ends = time.perf_counter() + _TURN
        while True:
            now = self._clock.monotonic()
            if self._delayed:
                for key, priority in self._delayed.take_due(now):
                    self.add(key, priority)
            if self._ready:
                return self._hand_out(now)
            if self._is_shut_down:
                raise ShutDown(f"work queue {self.name!r} is shut down")
            await self._wait()

    def done(self, key: K) -> None:
        """The round with this key is over; ignored when the key is not processing."""
        finished = self._processing.pop(key, None)
        if finished is None:
            return
        self._metrics.work_seconds.observe(self._clock.monotonic() - finished.since)
        again = self._dirty.pop(key, None)
        if again is not None:
            self._ready.put(key, again.priority, again.since)
            self._wake()
        elif self._failures and key not in self._delayed:
            self._failures.pop(key, None)
        if self._is_shut_down:
            self._note_if_drained()

    def shut_down(self) -> None:
        """Take no more keys and drop the delayed ones, hand out what is ready, then end the getters."""
        self._is_shut_down = True
        self._delayed.clear()
        for getter in self._getters:
            if not getter.done():
                getter.set_result(None)
        self._note_if_drained()

    def shut_down_now(self) -> None:
        """Like `shut_down`, but hand out nothing more."""
        self._ready.clear()
        self._dirty.clear()
        self.shut_down()

    async def drain(self) -> None:
        """Like `shut_down`, and wait until what was ready has been processed; the workers must go on meanwhile."""
        self.shut_down()
        await self._drained.wait()

    def depths(self) -> dict[int, int]:
        """Number of keys that are ready or must be processed again, by priority; may be called from other threads."""
        depths = self._ready.counts()
        for priority, _ in tuple(self._dirty.values()):
            depths[priority] = depths.get(priority, 0) + 1
        return depths

    def ages(self) -> list[float]:
        """How many seconds each key has been processing; may be called from other threads."""
        now = self._clock.monotonic()
        return [now - running.since for running in tuple(self._processing.values())]

    def _hand_out(self, now: float) -> K:
        key, priority, since = self._ready.pop()
        self._processing[key] = _Round(priority, now)
        self._metrics.queue_seconds.observe(now - since)
        return key

    async def _wait(self) -> None:
        """Wait until woken; the first getter to wait while keys are delayed also keeps the time of the earliest."""
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        due = self._delayed.first_due() if self._alarm is None else None
        try:
            if due is None:
                await getter
            else:
                await self._keep_time(_Alarm(getter, due))
        except BaseException:
            if getter.done() and not getter.cancelled():
                # What this getter was woken for is for another now.
                self._wake()
            raise
        finally:
            with suppress(ValueError):
                self._getters.remove(getter)

    async def _keep_time(self, alarm: _Alarm) -> None:
        self._alarm = alarm
        try:
            async with move_on_after(self._clock, alarm.due - self._clock.monotonic()):
                await alarm.getter
        finally:
            self._alarm = None
            if self._delayed:
                # This getter has other things to do: the next one takes over.
                self._wake()

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _note_if_drained(self) -> None:
        if not self._processing and not self._ready:
            self._drained.set()
