"""Syntax: the nodes of a parsed expression, macros taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    position: int
    value: object


@dataclass(frozen=True, slots=True)
class Ident:
    """A variable, a type, or the first part of the name of a function."""

    position: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """A field: `operand.field`, `operand.?field`, or whether it is there."""

    position: int
    operand: Node
    field: str
    test: bool = False
    """Whether this is the argument of `has`."""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function, an operator (`_+_`, `_[_]` and so on), or a method of a target."""

    position: int
    function: str
    target: Node | None
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """`[a, ?b]`."""

    position: int
    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()
    """Indexes of elements that are left out when they are none."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a map."""

    key: Node
    value: Node
    optional: bool


@dataclass(frozen=True, slots=True)
class MapOf:
    """`{k: v, ?k: v}`."""

    position: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Comprehension:
    """A macro over the items of a list or the keys of a map."""

    position: int
    macro: str
    """all, exists, existsOne, map, filter, transformList, transformMap or transformMapEntry."""
    range: Node
    variables: tuple[str, ...]
    """One (items or keys), or two (indexes and items, or keys and values)."""
    predicate: Node | None
    """Which items count; None for all of them."""
    result: Node | None
    """What an item becomes; None when the macro does not transform."""


@dataclass(frozen=True, slots=True)
class Bind:
    """`cel.bind(name, value, body)`, and what `optMap` and `optFlatMap` do with the value of an optional."""

    position: int
    name: str
    value: Node
    body: Node
    optional: str = ""
    """"map" or "flatMap" when the value is an optional that decides whether the body is evaluated."""


Node: TypeAlias = Literal | Ident | Select | Call | ListOf | MapOf | Comprehension | Bind
