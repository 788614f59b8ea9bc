"""Decoded JSON: comparing it, and the order of merged lists."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Final, TypeVar

_K = TypeVar("_K", bound="Hashable")

ABSENT: Final = object()
"""Stands for a value that does not exist."""


def same(left: object, right: object) -> bool:
    """Whether two JSON values are equal; unlike in Python, true is not 1."""
    return left is right or (left == right and _same_types(left, right))


def _same_types(left: object, right: object) -> bool:
    """Whether two values that are equal for Python have booleans in the same places."""
    if left is right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(_same_types(child, right[key]) for key, child in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return all(map(_same_types, left, right))
    return isinstance(left, bool) == isinstance(right, bool)


def merge_order(live: Sequence[_K], wanted: Sequence[_K]) -> list[_K]:
    """The keys of both lists, each once, as server-side apply and `$setElementOrder` order them.

    Wanted keys come in the wanted order. Keys that only the live list has keep their order and stay in front of the
    shared key that followed them.
    """
    wanted_keys, live_keys = set(wanted), set(live)
    waiting = deque(dict.fromkeys(wanted))
    merged: list[_K] = []
    for key in dict.fromkeys(live):
        if key not in wanted_keys:
            merged.append(key)
            continue
        if key != next((candidate for candidate in waiting if candidate in live_keys), None):
            continue
        while waiting[0] != key:
            merged.append(waiting.popleft())
        merged.append(waiting.popleft())
    merged.extend(waiting)
    return merged
