"""Lists."""

from __future__ import annotations

import itertools
import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from trainer_devcluster.apiserver.cel.errors import EvaluationError
from trainer_devcluster.apiserver.cel.library.operators import unsigned, whole
from trainer_devcluster.apiserver.cel.values import Uint, equal

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer_devcluster.apiserver.cel.signatures import Function

_ORDERED: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE: Final = ("int", "uint", "double", "duration")


def _is_sorted(items: list[Any]) -> bool:
    return all(first <= second for first, second in itertools.pairwise(items))


def _sum(items: list[Any]) -> Any:
    if items and isinstance(items[0], timedelta):
        return sum(items, timedelta())
    if items and isinstance(items[0], float):
        return math.fsum(items)
    total = sum(map(int, items))
    return unsigned(total) if items and isinstance(items[0], Uint) else whole(total)


def _extreme(choose: Callable[[list[Any]], Any], name: str) -> Function:
    def run(items: list[Any]) -> Any:
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        return choose(items)

    return run


def _index_of(items: list[Any], value: object) -> int:
    return next((index for index, item in enumerate(items) if equal(item, value)), -1)


def _last_index_of(items: list[Any], value: object) -> int:
    return next((index for index in reversed(range(len(items))) if equal(items[index], value)), -1)


SIGNATURES: Final[list[tuple[str, Function]]] = [
    *((f"list<{kind}>.isSorted() -> bool", _is_sorted) for kind in _ORDERED),
    *((f"list<{kind}>.sum() -> {kind}", _sum) for kind in _SUMMABLE),
    *((f"list<{kind}>.min() -> {kind}", _extreme(min, "min")) for kind in _ORDERED),
    *((f"list<{kind}>.max() -> {kind}", _extreme(max, "max")) for kind in _ORDERED),
    ("list<A>.indexOf(A) -> int", _index_of),
    ("list<A>.lastIndexOf(A) -> int", _last_index_of),
]
