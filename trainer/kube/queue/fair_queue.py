"""Fair queue: what waits to be worked on, shared by the namespaces that it is about.

Namespaces take turns, so that an item waits for one item of each other namespace and for no flood. A full queue drops
an item of the namespace that has most: one with few items loses none, whatever the others do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class FairQueue(Generic[T]):
    """Holds each item once.

    Args:
        namespace_of: of an item; empty for what has none.
        size: items that may wait. Default: any number.
        drops_oldest: whether a full queue drops the oldest item of a namespace. Default: False, the latest one.
    """

    def __init__(self, namespace_of: Callable[[T], str], size: float = math.inf, *, drops_oldest: bool = False) -> None:
        self._namespace_of = namespace_of
        self._size = size
        self._drops_oldest = drops_oldest
        self._length = 0
        self._lines: dict[str, dict[T, None]] = {}
        """By namespace, the one whose turn it is first."""

    def __len__(self) -> int:
        return self._length

    def __contains__(self, item: T) -> bool:
        return item in self._lines.get(self._namespace_of(item), ())

    def put(self, item: T) -> T | None:
        """Add an item to the end of its namespace's line, unless it waits there already.

        Returns:
            The item that has to go for it, itself perhaps; None where there is room.
        """
        line = self._lines.setdefault(self._namespace_of(item), {})
        if item in line:
            return None
        line[item] = None
        self._length += 1
        if self._length <= self._size:
            return None
        longest = max(self._lines.values(), key=len)
        longest = line if len(longest) == len(line) else longest
        dropped = next(iter(longest) if self._drops_oldest else reversed(longest))
        self._remove(dropped)
        return dropped

    def take(self) -> T:
        """Remove the first item of the namespace whose turn it is.

        Raises:
            StopIteration: there is none.
        """
        owner = next(iter(self._lines))
        item = next(iter(self._lines[owner]))
        self._remove(item)
        if owner in self._lines:
            self._lines[owner] = self._lines.pop(owner)
        return item

    def take_some(self, number: int) -> list[T]:
        """Remove as many items, or all."""
        return [self.take() for _ in range(min(number, self._length))]

    def _remove(self, item: T) -> None:
        owner = self._namespace_of(item)
        del self._lines[owner][item]
        self._length -= 1
        if not self._lines[owner]:
            del self._lines[owner]
