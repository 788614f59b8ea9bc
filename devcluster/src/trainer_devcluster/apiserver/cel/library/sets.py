"""Lists as sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer_devcluster.apiserver.cel.values import contains

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.cel.signatures import Function


def _contains(items: list[Any], part: list[Any]) -> bool:
    return all(contains(items, item) for item in part)


SIGNATURES: Final[list[tuple[str, Function]]] = [
    ("::sets.contains(list<A>, list<A>) -> bool", _contains),
    ("::sets.equivalent(list<A>, list<A>) -> bool", lambda a, b: _contains(a, b) and _contains(b, a)),
    ("::sets.intersects(list<A>, list<A>) -> bool", lambda a, b: any(contains(a, item) for item in b)),
]
