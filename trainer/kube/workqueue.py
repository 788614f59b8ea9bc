"""Work queue: which keys are to be looked at, each by one worker at a time.

A key is in at most one of two places besides waiting for a time: *ready* (to be handed out) and *processing* (handed
out, not yet `done`). Adding a key that is processing marks it, and `done` makes it ready again. Hence two workers never
have the same key, and no change is lost: an add during processing leads to another round.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio
import anyio.lowlevel

from trainer.kube.backoff import Backoff
from trainer.kube.clock import Clock, SystemClock, move_on_after
from trainer.kube.errors import KubeError

K = TypeVar("K", bound=Hashable)

LOW_PRIORITY = -100
"""For keys of the initial list, so that fresh changes pass the backlog of a start."""

RETRY = Backoff(initial=0.005, maximum=1000.0)
"""Per key; there is no limit shared by all keys, which would let many failing ones delay the healthy."""


class ShutDown(KubeError):  # noqa: N818 - a signal to the worker, not a failure
    """The queue is shut down and empty: the worker ends."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """Where a key stands in a heap; an entry is void once the key's current one is another."""

    priority: int
    ready_at: float = 0.0


class WorkQueue(Generic[K]):
    """Keys by priority (higher first), then in order of arrival; delays and backoff by the given clock."""

    def __init__(self, *, clock: Clock | None = None, retry: Backoff = RETRY) -> None:
        self._clock = clock or SystemClock()
        self._retry = retry
        self._order = itertools.count()
        self._ready: dict[K, _Entry] = {}
        self._ready_heap: list[tuple[int, int, _Entry, K]] = []
        self._delayed: dict[K, _Entry] = {}
        self._delayed_heap: list[tuple[float, int, _Entry, K]] = []
        self._processing: dict[K, int] = {}
        self._dirty: dict[K, int] = {}
        self._failures: dict[K, int] = {}
        self._getters: deque[anyio.Event] = deque()
        self._is_shut_down = False

    def __len__(self) -> int:
        """Number of keys that are ready or must be processed again; delayed ones do not count."""
        return len(self._ready) + len(self._dirty)

    def add(self, key: K, priority: int | None = None) -> None:
        """Have the key processed soon; a pending delay of it is void.

        The highest priority asked for wins; default: that of the round in progress, else 0. Ignored after `shut_down`.
        """
        if self._is_shut_down:
            return
        priority = self._priority(key, priority)
        delayed = self._delayed.pop(key, None)
        if delayed is not None:
            priority = max(priority, delayed.priority)
        if key in self._processing:
            self._dirty[key] = max(priority, self._dirty.get(key, priority))
            return
        present = self._ready.get(key)
        if present is None or present.priority < priority:
            self._make_ready(key, priority)

    def add_after(self, key: K, seconds: float, priority: int | None = None) -> None:
        """Have the key processed after a delay; if it already waits for an earlier time, that stays."""
        if seconds <= 0:
            self.add(key, priority)
            return
        if self._is_shut_down or key in self._ready or key in self._dirty:
            return
        entry = _Entry(self._priority(key, priority), self._clock.monotonic() + seconds)
        present = self._delayed.get(key)
        if present is not None:
            entry = _Entry(max(entry.priority, present.priority), min(entry.ready_at, present.ready_at))
        self._delayed[key] = entry
        heapq.heappush(self._delayed_heap, (entry.ready_at, next(self._order), entry, key))
        self._wake_getter()

    def add_rate_limited(self, key: K, priority: int | None = None) -> None:
        """Have the key processed after a delay that doubles with each call until `forget`."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, self._retry.pause(failures), priority)

    def forget(self, key: K) -> None:
        """The key was processed with success: its next failure waits the shortest time again."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often the key was added rate-limited since it was last forgotten."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """Take the next key; the caller must call `done` with it.

        Raises:
            ShutDown: after `shut_down`, once no key is ready.
        """
        await anyio.lowlevel.checkpoint()
        while True:
            self._promote_delayed()
            key = self._take_ready()
            if key is not None:
                return key
            if self._is_shut_down:
                raise ShutDown("the work queue is shut down")
            await self._wait()

    def done(self, key: K) -> None:
        """The round with this key is over."""
        self._processing.pop(key, None)
        priority = self._dirty.pop(key, None)
        if priority is not None:
            self._make_ready(key, priority)
        if self._is_shut_down:
            self._wake_getter()

    def shut_down(self) -> None:
        """Take no more keys, drop the delayed ones, hand out what is ready, then end the workers."""
        self._is_shut_down = True
        self._delayed.clear()
        self._delayed_heap.clear()
        for getter in self._getters:
            getter.set()
        self._getters.clear()

    def _priority(self, key: K, priority: int | None) -> int:
        return self._processing.get(key, 0) if priority is None else priority

    def _make_ready(self, key: K, priority: int) -> None:
        entry = _Entry(priority)
        self._ready[key] = entry
        heapq.heappush(self._ready_heap, (-priority, next(self._order), entry, key))
        self._wake_getter()

    def _take_ready(self) -> K | None:
        while self._ready_heap:
            _, _, entry, key = heapq.heappop(self._ready_heap)
            if self._ready.get(key) is entry:
                del self._ready[key]
                self._processing[key] = entry.priority
                return key
        return None

    def _promote_delayed(self) -> None:
        now = self._clock.monotonic()
        while self._delayed_heap and (self._delayed_heap[0][0] <= now or self._is_void(self._delayed_heap[0])):
            _, _, entry, key = heapq.heappop(self._delayed_heap)
            if self._delayed.get(key) is entry:
                del self._delayed[key]
                self.add(key, entry.priority)

    def _is_void(self, item: tuple[float, int, _Entry, K]) -> bool:
        return self._delayed.get(item[3]) is not item[2]

    async def _wait(self) -> None:
        """Wait until woken or until the earliest delay has passed.

        Getters are woken in the order in which they began to wait. Hence those that do not know of the earliest delay,
        because it was added while they waited, go before the one that was woken for it and keeps its time.
        """
        getter = anyio.Event()
        self._getters.append(getter)
        seconds = self._delayed_heap[0][0] - self._clock.monotonic() if self._delayed_heap else None
        try:
            if seconds is None:
                await getter.wait()
                return
            async with move_on_after(self._clock, seconds):
                await getter.wait()
        except BaseException:
            # Whatever this getter was woken for, or was keeping the time of, is for another now.
            self._wake_getter()
            raise
        finally:
            if getter in self._getters:
                self._getters.remove(getter)

    def _wake_getter(self) -> None:
        if self._getters:
            self._getters.popleft().set()
