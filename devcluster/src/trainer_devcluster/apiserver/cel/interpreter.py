"""Interpreter: turns the syntax of an expression into Python closures, and runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from trainer_devcluster.apiserver.cel.checker import TYPE_NAMES
from trainer_devcluster.apiserver.cel.errors import EvaluationError, no_such_key, no_such_overload
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
from trainer_devcluster.apiserver.cel.values import NONE, Optional, TypeName, find_key, some

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer_devcluster.apiserver.cel.signatures import Functions, Overload

Scope: TypeAlias = dict[str, Any]
Code: TypeAlias = Callable[[Scope], Any]


def compile_node(node: Node, functions: Functions, qualified: Mapping[int, str]) -> Code:
    """What computes an expression from the values of its variables.

    Args:
        node: its syntax, checked.
        functions: what it may call.
        qualified: by position, calls whose target is part of the name of the function.

    The result raises EvaluationError when the expression has no value.
    """
    return _Compiler(functions, qualified).compile(node)


class _Compiler:
    def __init__(self, functions: Functions, qualified: Mapping[int, str]) -> None:
        self._functions = functions
        self._qualified = qualified

    def compile(self, node: Node) -> Code:
        match node:
            case Literal():
                value = node.value
                return lambda _: value
            case Ident():
                return _ident(node.name)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Comprehension():
                return self._comprehension(node)
            case Bind():
                return self._bind(node)

    def _select(self, node: Select) -> Code:
        dotted = _qualified_type(node)
        if dotted is not None:
            return lambda _: dotted
        operand, name = self.compile(node.operand), node.field
        if node.test:
            return lambda scope: _has(operand(scope), name)
        if node.optional:
            return lambda scope: _optional_field(operand(scope), name)
        return lambda scope: _field(operand(scope), name)

    def _call(self, node: Call) -> Code:
        if node.position in self._qualified:
            name, operands = self._qualified[node.position], node.arguments
            overloads = self._functions[name]
        else:
            name = node.function
            operands = node.arguments if node.target is None else (node.target, *node.arguments)
            is_method = node.target is not None
            overloads = tuple(each for each in self._functions.get(name, ()) if each.is_method == is_method)
        arguments = [self.compile(operand) for operand in operands]
        if name == "_&&_":
            return _decided(arguments, decisive=False)
        if name == "_||_":
            return _decided(arguments, decisive=True)
        if name == "_?_:_":
            return _conditional(*arguments)
        if name in ("or", "orValue") and len(arguments) == 2:
            return _or(arguments[0], arguments[1], wrapped=name == "or")
        return _dispatch(overloads, arguments)

    def _list(self, node: ListOf) -> Code:
        elements = [self.compile(element) for element in node.elements]
        if not node.optional:
            return lambda scope: [element(scope) for element in elements]

        def run(scope: Scope) -> list[Any]:
            found = []
            for index, element in enumerate(elements):
                value = element(scope)
                if index not in node.optional:
                    found.append(value)
                elif value.present:
                    found.append(value.value)
            return found

        return run

    def _map(self, node: MapOf) -> Code:
        entries = [(self.compile(e.key), self.compile(e.value), e.optional) for e in node.entries]

        def run(scope: Scope) -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            for key_code, value_code, optional in entries:
                key, value = key_code(scope), value_code(scope)
                if not isinstance(key, str | int | bool):
                    raise EvaluationError("unsupported key type")
                if optional:
                    if not value.present:
                        continue
                    value = value.value
                if find_key(found, key) is not None:
                    raise EvaluationError(f"Failed with repeated key: {key}")
                found[key] = value
            return found

        return run

    def _bind(self, node: Bind) -> Code:
        value, body, name = self.compile(node.value), self.compile(node.body), node.name
        if not node.optional:
            return lambda scope: body({**scope, name: value(scope)})

        def run(scope: Scope) -> Any:
            found = value(scope)
            if not isinstance(found, Optional):
                raise no_such_overload()
            if not found.present:
                return NONE
            result = body({**scope, name: found.value})
            return some(result) if node.optional == "map" else result

        return run

    def _comprehension(self, node: Comprehension) -> Code:
        source = self.compile(node.range)
        predicate = None if node.predicate is None else self.compile(node.predicate)
        result = None if node.result is None else self.compile(node.result)
        folds: dict[str, Callable[[Iterator[tuple[Any, Any, Scope]]], Any]] = {
            "all": lambda items: _quantified(items, predicate, decisive=False),
            "exists": lambda items: _quantified(items, predicate, decisive=True),
            "existsOne": lambda items: sum(1 for _ in _chosen(items, predicate)) == 1,
            "filter": lambda items: [first for first, _, _ in _chosen(items, predicate)],
            "map": lambda items: [result(scope) for _, _, scope in _chosen(items, predicate)] if result else [],
            "transformList": lambda items: [result(s) for _, _, s in _chosen(items, predicate)] if result else [],
            "transformMap": lambda items: {k: result(s) for k, _, s in _chosen(items, predicate)} if result else {},
            "transformMapEntry": lambda items: _entries(result(s) for _, _, s in _chosen(items, predicate) if result),
        }
        fold, variables = folds[node.macro], node.variables
        return lambda scope: fold(_items(source(scope), variables, scope))


def _ident(name: str) -> Code:
    def run(scope: Scope) -> Any:
        if name in scope:
            return scope[name]
        if name in TYPE_NAMES:
            return TypeName(name)
        raise EvaluationError(f"no such attribute(s): {name}")

    return run


def _qualified_type(node: Select) -> TypeName | None:
    names, current = [node.field], node.operand
    while isinstance(current, Select):
        names.append(current.field)
        current = current.operand
    if isinstance(current, Ident) and current.name in ("google", "net"):
        return TypeName(".".join([current.name, *reversed(names)]))
    return None


def _field(value: Any, name: str) -> Any:
    if isinstance(value, Optional):
        return _optional_field(value, name)
    if not isinstance(value, dict):
        raise no_such_overload()
    if name not in value:
        raise no_such_key(name)
    return value[name]


def _optional_field(value: Any, name: str) -> Any:
    if isinstance(value, Optional):
        return _optional_field(value.value, name) if value.present else NONE
    if not isinstance(value, dict):
        raise no_such_overload()
    return some(value[name]) if name in value else NONE


def _has(value: Any, name: str) -> bool:
    if isinstance(value, Optional):
        return value.present and _has(value.value, name)
    if not isinstance(value, dict):
        raise no_such_overload()
    return name in value


def _decided(arguments: list[Code], *, decisive: bool) -> Code:
    """`&&` and `||`: either side may decide, also when the other one fails."""
    first, second = arguments

    def run(scope: Scope) -> bool:
        try:
            left = _bool(first(scope))
        except EvaluationError as error:
            if _bool(second(scope)) is decisive:
                return decisive
            raise error from None
        return left if left is decisive else _bool(second(scope))

    return run


def _conditional(condition: Code, then: Code, otherwise: Code) -> Code:
    return lambda scope: then(scope) if _bool(condition(scope)) else otherwise(scope)


def _or(optional: Code, otherwise: Code, *, wrapped: bool) -> Code:
    """`or` and `orValue` of optionals: what is not needed is not evaluated."""

    def run(scope: Scope) -> Any:
        value = optional(scope)
        if not isinstance(value, Optional):
            raise no_such_overload()
        if not value.present:
            return otherwise(scope)
        return value if wrapped else value.value

    return run


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise no_such_overload()
    return value


def _dispatch(overloads: tuple[Overload, ...], arguments: list[Code]) -> Code:
    def run(scope: Scope) -> Any:
        values = tuple([argument(scope) for argument in arguments])
        for overload in overloads:
            if overload.takes(values):
                try:
                    return overload.function(*values)
                except (ValueError, ArithmeticError, LookupError, TypeError) as error:
                    raise EvaluationError(str(error)) from error
        raise no_such_overload()

    return run


def _items(source: Any, variables: tuple[str, ...], scope: Scope) -> Iterator[tuple[Any, Any, Scope]]:
    """First and second variable of every step, and the scope in which they have these values."""
    if isinstance(source, dict):
        pairs = list(source.items())
    elif isinstance(source, list):
        pairs = list(enumerate(source)) if len(variables) == 2 else [(item, None) for item in source]
    else:
        raise no_such_overload()
    inner = dict(scope)
    for first, second in pairs:
        inner[variables[0]] = first
        if len(variables) == 2:
            inner[variables[1]] = second
        yield first, second, inner


def _chosen(items: Iterator[tuple[Any, Any, Scope]], predicate: Code | None) -> Iterator[tuple[Any, Any, Scope]]:
    return (item for item in items if predicate is None or _bool(predicate(item[2])))


def _quantified(items: Iterator[tuple[Any, Any, Scope]], predicate: Code | None, *, decisive: bool) -> bool:
    """`all` and `exists`: one item decides, also when the predicate fails for another."""
    failure: EvaluationError | None = None
    assert predicate is not None
    for _, _, scope in items:
        try:
            if _bool(predicate(scope)) is decisive:
                return decisive
        except EvaluationError as error:
            failure = error
    if failure is not None:
        raise failure
    return not decisive


def _entries(maps: Iterator[Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for entries in maps:
        for key, value in entries.items():
            if key in found:
                raise EvaluationError(f"insert failed: key '{key}' already exists")
            found[key] = value
    return found
