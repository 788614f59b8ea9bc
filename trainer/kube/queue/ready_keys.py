"""Ready keys: the part of a work queue that can be handed out now, highest priority first, then in order of arrival."""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)


class Ready(NamedTuple, Generic[K]):
    """A key with what is known of it."""

    key: K
    priority: int
    since: float
    """When it became ready, by the queue's clock."""


class ReadyKeys(Generic[K]):
    """One lane for each priority in use; all operations take the same time however many keys wait."""

    def __init__(self) -> None:
        # Not dict: finding the first key of one from which many first keys were deleted takes linear time.
        self._lanes: dict[int, OrderedDict[K, float]] = {}
        self._order: list[int] = []
        self._priorities: dict[K, int] = {}

    def __len__(self) -> int:
        return len(self._priorities)

    def __contains__(self, key: K) -> bool:
        return key in self._priorities

    def put(self, key: K, priority: int, since: float) -> bool:
        """Append a key to the lane of its priority; one that is there already can only move to a higher lane.

        Returns:
            Whether the key is new.
        """
        present = self._priorities.get(key)
        if present is not None:
            if present >= priority:
                return False
            since = self._take(key, present)
        lane = self._lanes.get(priority)
        if lane is None:
            lane = self._lanes[priority] = OrderedDict()
            insort(self._order, priority)
        lane[key] = since
        self._priorities[key] = priority
        return present is None

    def pop(self) -> Ready[K]:
        """Take the next key.

        Raises:
            IndexError: there is none.
        """
        priority = self._order[-1]
        lane = self._lanes[priority]
        key, since = lane.popitem(last=False)
        del self._priorities[key]
        if not lane:
            self._close(priority)
        return Ready(key, priority, since)

    def clear(self) -> None:
        """Forget all keys."""
        self._lanes.clear()
        self._order.clear()
        self._priorities.clear()

    def counts(self) -> dict[int, int]:
        """Number of keys by priority; may be called from other threads."""
        return {priority: len(lane) for priority, lane in tuple(self._lanes.items())}

    def _take(self, key: K, priority: int) -> float:
        lane = self._lanes[priority]
        since = lane.pop(key)
        if not lane:
            self._close(priority)
        return since

    def _close(self, priority: int) -> None:
        del self._lanes[priority]
        self._order.remove(priority)
