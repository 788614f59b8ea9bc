"""Delayed keys: the part of a work queue that waits for a time."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

_SLACK = 64
"""So many entries of the heap may be void before it is worth rebuilding."""


class _Delay(NamedTuple):
    due: float
    priority: int


class DelayedKeys(Generic[K]):
    """A heap by time; an entry is void once the key's delay is another one or over."""

    def __init__(self) -> None:
        self._order = itertools.count()
        self._delays: dict[K, _Delay] = {}
        self._heap: list[tuple[float, int, K]] = []

    def __len__(self) -> int:
        return len(self._delays)

    def __contains__(self, key: K) -> bool:
        return key in self._delays

    @property
    def entries(self) -> int:
        """Number of heap entries, void ones included: what the delays cost in memory."""
        return len(self._heap)

    def put(self, key: K, due: float, priority: int) -> None:
        """Delay a key; of two delays of it the earlier time and the higher priority count."""
        present = self._delays.get(key)
        if present is not None:
            priority = max(priority, present.priority)
            if present.due <= due:
                self._delays[key] = _Delay(present.due, priority)
                return
        self._delays[key] = _Delay(due, priority)
        heapq.heappush(self._heap, (due, next(self._order), key))
        if len(self._heap) > 2 * len(self._delays) + _SLACK:
            self._rebuild()

    def discard(self, key: K) -> int | None:
        """End the delay of a key; returns the priority that it had, or None when it was not delayed."""
        delay = self._delays.pop(key, None)
        return None if delay is None else delay.priority

    def first_due(self) -> float | None:
        """When the first delay is over."""
        while self._heap and self._is_outdated(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: float) -> Iterator[tuple[K, int]]:
        """End the delays that are over; gives each key with its priority, the longest overdue first."""
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if not self._is_outdated(entry):
                key = entry[2]
                yield key, self._delays.pop(key).priority

    def clear(self) -> None:
        """Forget all keys."""
        self._delays.clear()
        self._heap.clear()

    def _is_outdated(self, entry: tuple[float, int, K]) -> bool:
        delay = self._delays.get(entry[2])
        return delay is None or delay.due != entry[0]

    def _rebuild(self) -> None:
        # Keys that are delayed for long and made ready by changes before that would fill the memory with void entries.
        self._heap = [entry for entry in self._heap if not self._is_outdated(entry)]
        heapq.heapify(self._heap)
