"""Checker: finds the type of every part of an expression, and what cannot be right whatever the values are."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trainer_devcluster.apiserver.cel.errors import Issue
from trainer_devcluster.apiserver.cel.syntax import (
    Bind,
    Call,
    Comprehension,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Node,
    Select,
)
from trainer_devcluster.apiserver.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    UINT,
    Bindings,
    Type,
    list_of,
    map_of,
    optional_of,
)
from trainer_devcluster.apiserver.cel.values import Uint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_devcluster.apiserver.cel.signatures import Functions, Overload

TYPE_NAMES: Final = ("bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "type", "uint")
"""Types that expressions may name."""
_QUALIFIED_TYPES: Final = ("google.protobuf.Timestamp", "google.protobuf.Duration", "net.IP", "net.CIDR")
_LITERALS: Final = ((bool, BOOL), (Uint, UINT), (int, INT), (float, DOUBLE), (str, STRING), (bytes, BYTES))


@dataclass(slots=True)
class Checked:
    """What the checker has found out."""

    result: Type
    issues: list[Issue]
    variables: frozenset[str]
    """Those of the declared variables that are used."""
    qualified: dict[int, str]
    """By position: calls whose target is part of the name of the function, as in `sets.contains(a, b)`."""
    types: dict[int, Type]
    """By identity of the node: the type of each part; good as long as the syntax is kept."""
    overloads: dict[int, list[Overload]]
    """By identity of the node: the ways in which each call can be understood."""
    names: dict[int, str]
    """By identity of the node: types whose name has dots, as `net.IP`."""


def check(node: Node, variables: Mapping[str, Type], functions: Functions) -> Checked:
    """Check an expression.

    Args:
        node: its syntax.
        variables: declared variables and their types.
        functions: what it may call.
    """
    checker = _Checker(functions)
    result = checker.visit(node, ChainMap(dict(variables)))
    used = frozenset(checker.used & variables.keys())
    return Checked(result, checker.issues, used, checker.qualified, checker.types, checker.overloads, checker.names)


@dataclass(slots=True)
class _Checker:
    functions: Functions
    issues: list[Issue] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    qualified: dict[int, str] = field(default_factory=dict)
    types: dict[int, Type] = field(default_factory=dict)
    overloads: dict[int, list[Overload]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    def visit(self, node: Node, scope: ChainMap[str, Type]) -> Type:
        found = self.types[id(node)] = self._visit(node, scope)
        return found

    def _visit(self, node: Node, scope: ChainMap[str, Type]) -> Type:
        match node:
            case Literal():
                return _type_of_literal(node.value)
            case Ident():
                return self._ident(node, scope)
            case Select():
                return self._select(node, scope)
            case Call():
                return self._call(node, scope)
            case ListOf():
                return self._list(node, scope)
            case MapOf():
                return self._map(node, scope)
            case Comprehension():
                return self._comprehension(node, scope)
            case Bind():
                return self._bind(node, scope)

    def _issue(self, node: Node, message: str) -> Type:
        self.issues.append(Issue(node.position, message))
        return DYN

    def _ident(self, node: Ident, scope: ChainMap[str, Type]) -> Type:
        found = scope.get(node.name)
        if found is not None:
            # A name that a macro introduces hides the variable of the same name.
            if node.name not in ChainMap(*scope.maps[:-1]):
                self.used.add(node.name)
            return found
        if node.name in TYPE_NAMES:
            return Type("type", (Type(node.name),))
        return self._issue(node, f"undeclared reference to '{node.name}' (in container '')")

    def _select(self, node: Select, scope: ChainMap[str, Type]) -> Type:
        name = _dotted(node)
        if name in _QUALIFIED_TYPES:
            self.names[id(node)] = name
            return Type("type", (DYN,))
        operand = self.visit(node.operand, scope)
        wrapped = operand.name == "optional_type"
        if wrapped:
            operand = operand.parameters[0]
        found = self._field(node, operand)
        if node.test:
            return BOOL
        return optional_of(found) if wrapped or node.optional else found

    def _field(self, node: Select, operand: Type) -> Type:
        if operand.is_dynamic:
            return DYN
        if operand.name == "map":
            return operand.parameters[1]
        if operand.fields is None:
            return self._issue(node, f"type '{operand}' does not support field selection")
        found = operand.fields.get(node.field)
        return found if found is not None else self._issue(node, f"undefined field '{node.field}'")

    def _call(self, node: Call, scope: ChainMap[str, Type]) -> Type:
        name = node.function
        if node.target is not None:
            path = _dotted(node.target)
            if path and f"{path}.{name}" in self.functions and path.partition(".")[0] not in scope:
                self.qualified[node.position] = f"{path}.{name}"
                arguments = [self.visit(argument, scope) for argument in node.arguments]
                return self._resolve(node, self.functions[f"{path}.{name}"], arguments, f"{path}.{name}")
        overloads = [each for each in self.functions.get(name, ()) if each.is_method == (node.target is not None)]
        operands = node.arguments if node.target is None else (node.target, *node.arguments)
        # The arguments of a format may be of any types.
        arguments = [
            self._loose_list(each, scope) if isinstance(each, ListOf) and name == "format" else self.visit(each, scope)
            for each in operands
        ]
        if name not in self.functions:
            return self._issue(node, f"undeclared reference to '{name}' (in container '')")
        return self._resolve(node, overloads, arguments, name)

    def _resolve(
        self, node: Call, overloads: tuple[Overload, ...] | list[Overload], arguments: list[Type], name: str
    ) -> Type:
        results: list[Type] = []
        matching: list[Overload] = []
        for overload in overloads:
            bindings = Bindings()
            if len(overload.parameters) == len(arguments) and all(
                bindings.accepts(wanted, given) for wanted, given in zip(overload.parameters, arguments, strict=True)
            ):
                results.append(bindings.resolved(overload.result))
                matching.append(overload)
        self.overloads[id(node)] = matching
        if not results:
            is_method = node.target is not None and node.position not in self.qualified
            shown = f"{arguments[0]}." if is_method else ""
            given = ", ".join(map(str, arguments[1:] if is_method else arguments))
            return self._issue(node, f"found no matching overload for '{name}' applied to '{shown}({given})'")
        return results[0] if all(result == results[0] for result in results) else DYN

    def _loose_list(self, node: ListOf, scope: ChainMap[str, Type]) -> Type:
        found = self.types[id(node)] = self._list(node, scope, uniform=False)
        return found

    def _list(self, node: ListOf, scope: ChainMap[str, Type], *, uniform: bool = True) -> Type:
        item: Type | None = None
        for index, element in enumerate(node.elements):
            found = self.visit(element, scope)
            if index in node.optional:
                found = self._unwrapped(element, found)
            item = self._uniform(element, item, found) if uniform else DYN
        return list_of(item or DYN)

    def _map(self, node: MapOf, scope: ChainMap[str, Type]) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._uniform(entry.key, key, self.visit(entry.key, scope))
            found = self.visit(entry.value, scope)
            if entry.optional:
                found = self._unwrapped(entry.value, found)
            value = self._uniform(entry.value, value, found)
        return map_of(key or DYN, value or DYN)

    def _unwrapped(self, node: Node, found: Type) -> Type:
        if found.name == "optional_type":
            return found.parameters[0]
        return (
            found if found.is_dynamic else self._issue(node, f"expected type 'optional_type(dyn)' but found '{found}'")
        )

    def _uniform(self, node: Node, known: Type | None, found: Type) -> Type:
        """The type of all items: literals hold values of one type."""
        if known is None:
            return found
        if known.is_dynamic or found.is_dynamic:
            return DYN
        if not Bindings().accepts(known, found):
            self._issue(node, f"expected type '{known}' but found '{found}'")
        return known

    def _comprehension(self, node: Comprehension, scope: ChainMap[str, Type]) -> Type:
        source = self.visit(node.range, scope)
        if source.name == "list":
            first, second = (INT, source.parameters[0]) if len(node.variables) == 2 else (source.parameters[0], DYN)
        elif source.name == "map":
            first, second = source.parameters
        elif source.is_dynamic:
            first = second = DYN
        else:
            detail = "cannot be range of a comprehension (must be list, map, or dynamic)"
            self._issue(node.range, f"expression of type '{source}' {detail}")
            first = second = DYN
        inner = scope.new_child(dict(zip(node.variables, (first, second), strict=False)))
        if node.predicate is not None:
            self._require_bool(node, node.predicate, self.visit(node.predicate, inner))
        result = DYN if node.result is None else self.visit(node.result, inner)
        if node.macro in ("all", "exists", "existsOne"):
            return BOOL
        if node.macro == "filter":
            return list_of(first)
        if node.macro in ("map", "transformList"):
            return list_of(result)
        key = INT if source.name == "list" else first
        return map_of(key, result) if node.macro == "transformMap" else result

    def _require_bool(self, node: Comprehension, predicate: Node, found: Type) -> None:
        if found != BOOL and not found.is_dynamic:
            function = {"all": "_&&_", "exists": "_||_"}.get(node.macro, "_?_:_")
            if function == "_?_:_":
                shown = {"existsOne": "int, int"}.get(node.macro, "list(dyn), list(dyn)")
                given = f"{found}, {shown}"
            else:
                given = f"bool, {found}"
            self.issues.append(
                Issue(predicate.position, f"found no matching overload for '{function}' applied to '({given})'")
            )

    def _bind(self, node: Bind, scope: ChainMap[str, Type]) -> Type:
        value = self.visit(node.value, scope)
        if not node.optional:
            return self.visit(node.body, scope.new_child({node.name: value}))
        if value.name != "optional_type" and not value.is_dynamic:
            name = "optMap" if node.optional == "map" else "optFlatMap"
            return self._issue(node, f"found no matching overload for '{name}' applied to '{value}.()'")
        inner = value.parameters[0] if value.parameters else DYN
        body = self.visit(node.body, scope.new_child({node.name: inner}))
        return optional_of(body) if node.optional == "map" else body


def _type_of_literal(value: object) -> Type:
    return next((found for kind, found in _LITERALS if isinstance(value, kind)), NULL)


def _dotted(node: Node) -> str:
    """`a.b.c` when the node is nothing but names."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test and not node.optional:
        operand = _dotted(node.operand)
        return f"{operand}.{node.field}" if operand else ""
    return ""
