"""Signatures: the functions that expressions may call, what they take, and what computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trainer_devcluster.apiserver.cel.types import Type, parse_type
from trainer_devcluster.apiserver.cel.values import Optional, TypeName, Uint, type_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Function: TypeAlias = Callable[..., Any]

_PYTHON: Final[dict[str, type]] = {
    "uint": Uint, "double": float, "string": str, "bytes": bytes, "list": list, "map": dict,
    "timestamp": datetime, "duration": timedelta, "optional_type": Optional, "type": TypeName, "bool": bool,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function."""

    is_method: bool
    """Whether the first argument stands before the dot."""
    parameters: tuple[Type, ...]
    result: Type
    function: Function

    def takes(self, arguments: tuple[object, ...]) -> bool:
        """Whether values are of the types that are expected."""
        return len(arguments) == len(self.parameters) and all(
            _is_a(argument, parameter) for argument, parameter in zip(arguments, self.parameters, strict=True)
        )


Functions: TypeAlias = "Mapping[str, tuple[Overload, ...]]"


def declare(signatures: Iterable[tuple[str, Function]]) -> dict[str, tuple[Overload, ...]]:
    """The overloads of functions, by name.

    Args:
        signatures: such as `string.charAt(int) -> string` (a method), `size(list<A>) -> int` (a function) or
            `_+_(int, int) -> int` (an operator), each with what computes it. Names with a dot in them follow `::`, as
            in `::sets.contains(list<A>, list<A>) -> bool`.
    """
    declared: dict[str, tuple[Overload, ...]] = {}
    for text, function in signatures:
        name, overload = _parsed(text, function)
        declared[name] = (*declared.get(name, ()), overload)
    return declared


def merged(*declarations: Functions) -> dict[str, tuple[Overload, ...]]:
    """Declarations put together; a name may have overloads in several of them."""
    together: dict[str, tuple[Overload, ...]] = {}
    for functions in declarations:
        for name, overloads in functions.items():
            together[name] = (*together.get(name, ()), *overloads)
    return together


def _parsed(text: str, function: Function) -> tuple[str, Overload]:
    head, _, result = text.rpartition(" -> ")
    before, _, taken = head.removesuffix(")").rpartition("(")
    parameters = [parse_type(each) for each in _split(taken)]
    target, dot, name = ("", "", before[2:]) if before.startswith("::") else before.rpartition(".")
    if dot:
        parameters.insert(0, parse_type(target))
    return name, Overload(bool(dot), tuple(parameters), parse_type(result), function)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part for part in (*parts, text[start:]) if part.strip()]


def _is_a(value: object, declared: Type) -> bool:
    if declared.is_dynamic or declared.is_parameter:
        return True
    if declared.name == "int":
        return isinstance(value, int) and not isinstance(value, bool | Uint)
    if declared.name == "null_type":
        return value is None
    python = _PYTHON.get(declared.name)
    return isinstance(value, python) if python is not None else type_name(value) == declared.name
