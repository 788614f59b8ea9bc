"""List order: where the items of two versions of a list come when the lists are merged item by item."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    K = TypeVar("K", bound="Hashable")
else:
    K = TypeVar("K")


def merge_order(live: Sequence[K], wanted: Sequence[K]) -> list[K]:
    """The keys of both lists, each once, as server-side apply and `$setElementOrder` order them.

    Wanted keys come in the wanted order. Keys that only the live list has keep their order and stay in front of the
    shared key that followed them.
    """
    wanted_keys, live_keys = set(wanted), set(live)
    waiting = deque(dict.fromkeys(wanted))
    merged: list[K] = []
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
