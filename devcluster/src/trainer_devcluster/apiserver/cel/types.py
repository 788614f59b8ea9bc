"""Types: what is known about values before an expression is evaluated, and how generic types are matched."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Type:
    """A type."""

    name: str
    """int, string, list and so on; one capital letter is a type parameter."""
    parameters: tuple[Type, ...] = ()
    fields: Mapping[str, Type] | None = field(default=None, compare=False)
    """Of an object: the type of each field."""

    def __str__(self) -> str:
        shown = _SHOWN.get(self.name, self.name)
        return f"{shown}({', '.join(map(str, self.parameters))})" if self.parameters else shown

    @property
    def is_parameter(self) -> bool:
        """Whether it stands for any type, the same one wherever it occurs in a signature."""
        return len(self.name) == 1

    @property
    def is_dynamic(self) -> bool:
        """Whether nothing is known."""
        return self.name == "dyn"


_SHOWN: Final = {"null_type": "null"}
DYN: Final = Type("dyn")
BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type("null_type")
TIMESTAMP: Final = Type("timestamp")
DURATION: Final = Type("duration")
_NEVER_NULL: Final = frozenset({"bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"})
_WORD: Final = re.compile(r"\s*([\w./]+|[<>,])")


def list_of(item: Type) -> Type:
    """A list."""
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    """A map."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """A value that may not be there."""
    return Type("optional_type", (value,))


def object_of(name: str, fields: Mapping[str, Type]) -> Type:
    """An object with named fields."""
    return Type(name, (), fields)


def parse_type(text: str) -> Type:
    """A type as signatures write it: `list<A>`, `map<string, dyn>`, `optional<int>`."""
    words = _WORD.findall(text)
    parsed, rest = _parse(words)
    assert not rest, text
    return parsed


def _parse(words: list[str]) -> tuple[Type, list[str]]:
    name, rest = words[0], words[1:]
    if rest[:1] != ["<"]:
        return Type(name), rest
    parameters: list[Type] = []
    while rest[0] in "<,":
        parameter, rest = _parse(rest[1:])
        parameters.append(parameter)
    return Type("optional_type" if name == "optional" else name, tuple(parameters)), rest[1:]


class Bindings:
    """What type parameters stand for while a call is matched with a signature."""

    def __init__(self) -> None:
        self._found: dict[str, Type] = {}

    def accepts(self, expected: Type, actual: Type) -> bool:
        """Whether a value of one type can stand where another is expected; binds parameters on the way."""
        if expected.is_parameter:
            bound = self._found.get(expected.name)
            if bound is None or (bound.is_dynamic and not actual.is_dynamic):
                self._found[expected.name] = actual
                return True
            if self._matches(bound, actual):
                return True
            if self._matches(actual, bound):
                self._found[expected.name] = actual
                return True
            return False
        return self._matches(expected, actual)

    def resolved(self, declared: Type) -> Type:
        """A type with its parameters replaced by what they stand for; what is not known is dynamic."""
        if declared.is_parameter:
            return self._found.get(declared.name, DYN)
        if not declared.parameters:
            return declared
        return Type(declared.name, tuple(map(self.resolved, declared.parameters)), declared.fields)

    def _matches(self, expected: Type, actual: Type) -> bool:
        if expected.is_dynamic or actual.is_dynamic:
            return True
        if actual == NULL and expected != NULL:
            return expected.name not in _NEVER_NULL
        if expected == NULL and actual != NULL:
            return actual.name not in _NEVER_NULL
        if expected.name == actual.name == "type":
            return True
        if expected.name != actual.name or len(expected.parameters) != len(actual.parameters):
            return False
        pairs = zip(expected.parameters, actual.parameters, strict=True)
        return all(self.accepts(wanted, given) for wanted, given in pairs)
