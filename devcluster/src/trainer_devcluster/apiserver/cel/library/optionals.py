"""Optional values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer_devcluster.apiserver.cel.errors import EvaluationError
from trainer_devcluster.apiserver.cel.values import NONE, Optional, some

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.cel.signatures import Function


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _unless_zero(value: Any) -> Optional:
    return some(value) if value else NONE


def _unwrapped(items: list[Optional]) -> list[Any]:
    return [item.value for item in items if item.present]


SIGNATURES: Final[list[tuple[str, Function]]] = [
    ("::optional.of(A) -> optional<A>", some),
    ("::optional.ofNonZeroValue(A) -> optional<A>", _unless_zero),
    ("::optional.none() -> optional<A>", lambda: NONE),
    ("::optional.unwrap(list<optional<A>>) -> list<A>", _unwrapped),
    ("list<optional<A>>.unwrapOpt() -> list<A>", _unwrapped),
    ("optional<A>.hasValue() -> bool", lambda optional: optional.present),
    ("optional<A>.value() -> A", _value),
    ("optional<A>.or(optional<A>) -> optional<A>", lambda first, second: first if first.present else second),
    ("optional<A>.orValue(A) -> A", lambda optional, other: optional.value if optional.present else other),
]
