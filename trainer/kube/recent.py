"""Recent: a memory of bounded size, for what may be forgotten."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class Recent(Generic[_K, _V]):
    """Values by key; when there are too many, the one that was put longest ago goes. Reading changes nothing."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[_K, _V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: _K) -> bool:
        return key in self._values

    def get(self, key: _K) -> _V | None:
        """The value of a key; None if it was never put, or has gone."""
        return self._values.get(key)

    def put(self, key: _K, value: _V) -> None:
        """Remember a value in place of the one that the key had."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._size:
            self._values.popitem(last=False)

    def pop(self, key: _K) -> _V | None:
        """Forget the value of a key, and return it."""
        return self._values.pop(key, None)

    def clear(self) -> None:
        """Forget all values."""
        self._values.clear()
