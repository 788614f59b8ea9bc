"""Costs of calls: what the functions of the library are estimated to cost, without their arguments.

One unit is about what it takes to look up a variable. A function that is not named here costs one.
Sources: the cost model of github.com/google/cel-go and the library of k8s.io/apiserver. The API server holds these
figures stable, because they decide which rules may be written, and so do we, also where they are odd: `!=` of
quantities costs as much as that of endless texts, for example, and `==` does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from trainer_devcluster.apiserver.cel.ranges import LARGEST, UNKNOWN, Range, exactly
from trainer_devcluster.apiserver.cel.syntax import Literal, Node

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.cel.signatures import Overload
    from trainer_devcluster.apiserver.cel.types import Type

PATH_OF_ITEMS: Final = "@items"
PATH_OF_VALUES: Final = "@values"
PATH_OF_KEYS: Final = "@keys"
PATH_OF_INDEXES: Final = "@indices"
ONE: Final = exactly(1)
_TEXT: Final = 0.1
"""Cost of one character of a text that is read or written."""
_PATTERN: Final = 0.25
"""Cost of one character of a regular expression, for each unit that the text costs: four are taken for a state."""
_FORMAT_PATTERN: Final = 128
"""Characters of the longest regular expression behind a named format."""
_FORMAT_NAME: Final = 64
_ADDRESS: Final = Range(4, 16)
"""Bytes of an address."""
_FLAT_TYPES: Final = ("kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR")

Path = tuple[str, ...]
"""From a variable through field names, `@items`, `@values` and `@keys`; empty for what is computed."""
SizeOf = Callable[[Path], int | None]
"""The largest size of what a path leads to, None when it is not known."""


@dataclass(frozen=True, slots=True)
class Operand:
    """What is known about a target or an argument."""

    node: Node
    type: Type
    path: Path
    size: Range
    size_of: SizeOf

    @property
    def item_type(self) -> Type | None:
        """Type of the items of a list or the keys of a map; None when it has neither."""
        return self.type.parameters[0] if self.type.parameters else None

    @property
    def item_size(self) -> Range:
        """Size of each item."""
        largest = self.size_of((*self.path, PATH_OF_ITEMS)) if self.path else None
        return UNKNOWN if largest is None else Range(0, largest)


class Estimate(NamedTuple):
    """What a call costs without its arguments, and how large its result is."""

    cost: Range
    size: Range | None = None


def cost_of_call(name: str, overload: Overload, target: Operand | None, arguments: list[Operand]) -> Estimate:
    """What one way to understand a call costs.

    Args:
        name: the function.
        overload: the way.
        target: what stands before the dot.
        arguments: the others.
    """
    operands = arguments if target is None else [target, *arguments]
    if name in ("_==_", "_!=_"):
        return Estimate(_comparison(name, operands))
    if name in ("_<_", "_<=_", "_>_", "_>=_"):
        return Estimate(_order(operands) if overload.parameters[0].name in ("string", "bytes") else ONE)
    if name == "@in":
        return Estimate(operands[1].size if overload.parameters[1].name == "list" else ONE)
    estimate = _BY_PARAMETER.get((name, overload.parameters[0].name if overload.parameters else ""))
    estimate = estimate or _BY_NAME.get(name)
    return Estimate(ONE) if estimate is None else estimate(operands)


def _comparison(name: str, operands: list[Operand]) -> Range:
    left, right = operands
    if name == "_==_" and left.type == right.type:
        if left.type.name in _FLAT_TYPES:
            return ONE
        if left.type.name == "kubernetes.NamedFormat":
            return Range(1, _FORMAT_NAME).scaled(_TEXT)
        if left.type.name == "kubernetes.URL":
            return Range(1, 1 if right.size == UNKNOWN else right.size.most).scaled(_TEXT)
    return _order(operands)


def _order(operands: list[Operand]) -> Range:
    shorter = min(operand.size.most for operand in operands)
    return Range(min(shorter, 1), shorter).scaled(_TEXT)


def _reading(operands: list[Operand], *, which: int = 0, factor: float = _TEXT, sized: bool = False) -> Estimate:
    """Going once through a text; the result is as long when it is `sized`."""
    size = operands[which].size
    return Estimate(size.scaled(factor), size if sized else None)


def _concatenation(operands: list[Operand], *, factor: float) -> Estimate:
    size = operands[0].size + operands[1].size
    return Estimate(size.scaled(factor) if factor else ONE, size)


def _to_bytes(operands: list[Operand]) -> Estimate:
    size = operands[0].size
    return Estimate(size.scaled(_TEXT), Range(size.least, min(size.most * 4, LARGEST)))


def _to_text(operands: list[Operand]) -> Estimate:
    size = operands[0].size
    return Estimate(size.scaled(_TEXT), Range(size.least // 4, size.most))


def _quote(operands: list[Operand]) -> Estimate:
    size = operands[0].size
    return Estimate(size.scaled(_TEXT), Range(min(size.least + 2, LARGEST), min(size.most * 2 + 2, LARGEST)))


def _contains(operands: list[Operand]) -> Estimate:
    text, part = operands
    return Estimate(text.size.scaled(_TEXT) * part.size.scaled(_TEXT))


def _pattern(operands: list[Operand], *, finds: bool = False) -> Estimate:
    text, pattern = operands[:2]
    cost = (text.size + ONE).scaled(_TEXT) * pattern.size.scaled(_PATTERN)
    return Estimate(cost, Range(0, text.size.most) if finds else None)


def _over_items(operands: list[Operand]) -> Estimate:
    target = operands[0]
    if target.item_type is None:
        return Estimate(target.size.scaled(_TEXT))
    each = ONE + target.item_size.scaled(_TEXT) if target.item_type.name in ("string", "bytes") else ONE
    return Estimate(target.size * each)


def _replace(operands: list[Operand]) -> Estimate:
    text, old, new = (operand.size for operand in operands[:3])
    if old.least == 0:
        most = Range(0, min(text.most + 1, LARGEST)) * new + text
    elif new.most <= old.least:
        most = text
    else:
        most = Range(0, _divided(text.most, old.least)) * new
    if old.most == 0:
        least = (text.least + 1) * new.least + text.least
    elif old.most <= new.least:
        least = text.least
    else:
        least = _divided(text.least, old.most) * new.least
    return Estimate(text.scaled(2 * _TEXT), Range(min(least, LARGEST), most.most))


def _divided(value: int, by: int) -> int:
    return math.ceil(float(value) / by)


def _split(operands: list[Operand]) -> Estimate:
    text = operands[0].size
    limit = operands[2].node if len(operands) > 2 else None
    most = limit.value if isinstance(limit, Literal) and isinstance(limit.value, int) else text.most
    return Estimate(text.scaled(2 * _TEXT), Range(0, most if most >= 0 else LARGEST))


def _join(operands: list[Operand]) -> Estimate:
    parts = operands[0].size
    size = parts * operands[0].item_size
    if len(operands) > 1:
        size += operands[1].size * Range(max(parts.least - 1, 0), max(parts.most - 1, 0))
    return Estimate(size.scaled(_TEXT), size)


def _address_in(operands: list[Operand], *, of_network: bool) -> Estimate:
    cost = (_ADDRESS + _ADDRESS).scaled(_TEXT)
    if of_network:
        cost += _ADDRESS.scaled(_TEXT) + ONE
    other = operands[1]
    return Estimate(cost + other.size.scaled(_TEXT) if other.type.name == "string" else cost)


def _validate(operands: list[Operand]) -> Estimate:
    return Estimate(operands[1].size.scaled(_TEXT).scaled(_FORMAT_PATTERN * _PATTERN))


def _sets(operands: list[Operand], *, times: int = 1) -> Estimate:
    return Estimate((operands[0].size * operands[1].size).scaled(times) + ONE)


_Function = Callable[[list[Operand]], Estimate]
_READ: Final = ("cidr", "isCIDR", "isIP", "quantity", "isQuantity", "semver", "isSemver", "format")
_BY_NAME: Final[dict[str, _Function]] = {
    **dict.fromkeys(_READ, _reading),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), partial(_reading, sized=True)),
    **dict.fromkeys(("startsWith", "endsWith"), partial(_reading, which=1)),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _over_items),
    **dict.fromkeys(("find", "findAll"), partial(_pattern, finds=True)),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _sets),
    "sets.equivalent": partial(_sets, times=2),
    "strings.quote": _quote,
    "contains": _contains,
    "matches": _pattern,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "ip.isCanonical": partial(_reading, factor=2 * _TEXT),
    "containsIP": partial(_address_in, of_network=False),
    "containsCIDR": partial(_address_in, of_network=True),
    "validate": _validate,
}
_BY_PARAMETER: Final[dict[tuple[str, str], _Function]] = {
    ("ip", "string"): _reading,
    ("bytes", "string"): _to_bytes,
    ("string", "bytes"): _to_text,
    ("_+_", "string"): partial(_concatenation, factor=_TEXT),
    ("_+_", "bytes"): partial(_concatenation, factor=_TEXT),
    ("_+_", "list"): partial(_concatenation, factor=0),
}
"""By name and type of the first parameter, the target included."""
