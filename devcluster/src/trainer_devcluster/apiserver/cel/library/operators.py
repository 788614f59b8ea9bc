"""Operators, and the functions of the core language that are none of its conversions."""

from __future__ import annotations

import itertools
import math
import operator
from typing import TYPE_CHECKING, Any, Final

from trainer_devcluster.apiserver.cel.errors import EvaluationError, no_such_key
from trainer_devcluster.apiserver.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NONE,
    Optional,
    Uint,
    contains,
    equal,
    find_key,
    some,
)
from trainer_devcluster.apiserver.schema.formats import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer_devcluster.apiserver.cel.signatures import Function

_ORDERED: Final = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_NUMBERS: Final = ("int", "uint", "double")


def whole(value: int, least: int = MIN_INT, most: int = MAX_INT) -> int:
    """An integer that fits.

    Raises:
        EvaluationError: it does not.
    """
    if not least <= value <= most:
        raise EvaluationError("integer overflow" if least < 0 else "unsigned integer overflow")
    return value


def unsigned(value: int) -> Uint:
    """An unsigned integer that fits.

    Raises:
        EvaluationError: it does not.
    """
    return Uint(whole(value, 0, MAX_UINT))


def _divided(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _ratio(left: float, right: float) -> float:
    if right == 0:
        return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)
    return left / right


def _item(items: list[Any], index: int) -> Any:
    if not 0 <= index < len(items):
        raise EvaluationError(f"index out of bounds: {index}")
    return items[index]


def _value(entries: dict[Any, Any], key: object) -> Any:
    found = find_key(entries, key)
    if found is None:
        raise no_such_key(key)
    return found[0]


def _optional_item(items: Any, index: Any) -> Optional:
    if isinstance(items, Optional):
        return _optional_item(items.value, index) if items.present else NONE
    if isinstance(items, list):
        return some(items[index]) if 0 <= index < len(items) else NONE
    found = find_key(items, index)
    return NONE if found is None else some(found[0])


def _comparisons() -> list[tuple[str, Function]]:
    signs: tuple[tuple[str, Callable[[Any, Any], bool]], ...] = (
        ("_<_", operator.lt), ("_<=_", operator.le), ("_>_", operator.gt), ("_>=_", operator.ge),
    )  # fmt: skip
    same = [(kind, kind) for kind in _ORDERED]
    pairs = [*same, *itertools.permutations(_NUMBERS, 2)]
    return [(f"{sign}({left}, {right}) -> bool", compare) for sign, compare in signs for left, right in pairs]


def _matches(text: str, pattern: str) -> bool:
    return bool(compile_pattern(pattern).search(text))


def _whole_operation(function: Callable[[int, int], int]) -> Function:
    return lambda left, right: whole(function(left, right))


def _unsigned_operation(function: Callable[[int, int], int]) -> Function:
    return lambda left, right: unsigned(function(int(left), int(right)))


def _not_evaluated(*_: object) -> None:
    # The interpreter decides which of the arguments it evaluates.
    raise AssertionError


SIGNATURES: Final[list[tuple[str, Function]]] = [
    ("_&&_(bool, bool) -> bool", _not_evaluated),
    ("_||_(bool, bool) -> bool", _not_evaluated),
    ("_?_:_(bool, A, A) -> A", _not_evaluated),
    ("!_(bool) -> bool", operator.not_),
    ("_==_(A, A) -> bool", equal),
    ("_!=_(A, A) -> bool", lambda left, right: not equal(left, right)),
    *_comparisons(),
    ("-_(int) -> int", lambda value: whole(-value)),
    ("-_(double) -> double", operator.neg),
    ("_+_(int, int) -> int", _whole_operation(operator.add)),
    ("_+_(uint, uint) -> uint", _unsigned_operation(operator.add)),
    ("_+_(double, double) -> double", operator.add),
    ("_+_(string, string) -> string", operator.add),
    ("_+_(bytes, bytes) -> bytes", operator.add),
    ("_+_(list<A>, list<A>) -> list<A>", operator.add),
    ("_-_(int, int) -> int", _whole_operation(operator.sub)),
    ("_-_(uint, uint) -> uint", _unsigned_operation(operator.sub)),
    ("_-_(double, double) -> double", operator.sub),
    ("_*_(int, int) -> int", _whole_operation(operator.mul)),
    ("_*_(uint, uint) -> uint", _unsigned_operation(operator.mul)),
    ("_*_(double, double) -> double", operator.mul),
    ("_/_(int, int) -> int", _whole_operation(_divided)),
    ("_/_(uint, uint) -> uint", _unsigned_operation(_divided)),
    ("_/_(double, double) -> double", _ratio),
    ("_%_(int, int) -> int", _remainder),
    ("_%_(uint, uint) -> uint", _unsigned_operation(_remainder)),
    ("@in(A, list<A>) -> bool", lambda value, items: contains(items, value)),
    ("@in(A, map<A, B>) -> bool", lambda value, entries: contains(entries, value)),
    ("_[_](list<A>, int) -> A", _item),
    ("_[_](map<A, B>, A) -> B", _value),
    ("_[_](optional<list<A>>, int) -> optional<A>", _optional_item),
    ("_[_](optional<map<A, B>>, A) -> optional<B>", _optional_item),
    ("_[?_](list<A>, int) -> optional<A>", _optional_item),
    ("_[?_](map<A, B>, A) -> optional<B>", _optional_item),
    ("_[?_](optional<list<A>>, int) -> optional<A>", _optional_item),
    ("_[?_](optional<map<A, B>>, A) -> optional<B>", _optional_item),
    *((f"size({kind}) -> int", len) for kind in ("string", "bytes", "list<A>", "map<A, B>")),
    *((f"{kind}.size() -> int", len) for kind in ("string", "bytes", "list<A>", "map<A, B>")),
    ("matches(string, string) -> bool", _matches),
    ("string.matches(string) -> bool", _matches),
    ("string.contains(string) -> bool", operator.contains),
    ("string.startsWith(string) -> bool", str.startswith),
    ("string.endsWith(string) -> bool", str.endswith),
]
