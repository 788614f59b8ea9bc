"""Macros: calls that are taken apart while an expression is parsed, because some arguments are names or run often.

Sources: CEL language definition, "Macros"; the extensions for optional values, bindings and comprehensions with two
variables that the API server has.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from trainer_devcluster.apiserver.cel.syntax import Bind, Call, Comprehension, Ident, Node, Select

if TYPE_CHECKING:
    from collections.abc import Callable

    Macro = Callable[[int, Node, tuple[Node, ...]], Node]


class MacroError(Exception):
    """An argument is not what the macro needs."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


def _has(position: int, _: Node, arguments: tuple[Node, ...]) -> Node:
    (operand,) = arguments
    if not isinstance(operand, Select) or operand.optional:
        raise MacroError(position, "invalid argument to has() macro")
    return Select(operand.position, operand.operand, operand.field, test=True)


def _one_variable(macro: str, position: int, target: Node, arguments: tuple[Node, ...]) -> Node:
    variable, predicate = _variable(arguments[0]), arguments[1]
    return Comprehension(position, macro, target, (variable,), predicate, None)


def _two_variables(macro: str, position: int, target: Node, arguments: tuple[Node, ...]) -> Node:
    variables = _variable(arguments[0]), _variable(arguments[1])
    return Comprehension(position, macro, target, variables, arguments[2], None)


def _map(position: int, target: Node, arguments: tuple[Node, ...]) -> Node:
    predicate = arguments[1] if len(arguments) == 3 else None
    return Comprehension(position, "map", target, (_variable(arguments[0]),), predicate, arguments[-1])


def _transform(macro: str, position: int, target: Node, arguments: tuple[Node, ...]) -> Node:
    variables = _variable(arguments[0]), _variable(arguments[1])
    predicate = arguments[2] if len(arguments) == 4 else None
    return Comprehension(position, macro, target, variables, predicate, arguments[-1])


def _optional(kind: str, position: int, target: Node, arguments: tuple[Node, ...]) -> Node:
    return Bind(position, _variable(arguments[0]), target, arguments[1], kind)


def _bind(position: int, target: Node, arguments: tuple[Node, ...]) -> Node:
    if not isinstance(target, Ident) or target.name != "cel":
        return Call(position, "bind", target, arguments)
    return Bind(position, _variable(arguments[0]), arguments[1], arguments[2])


def _variable(node: Node) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.position, "argument must be a simple name")
    return node.name


GLOBAL_MACROS: Final[dict[tuple[str, int], Macro]] = {("has", 1): _has}
"""By name and number of arguments."""
MEMBER_MACROS: Final[dict[tuple[str, int], Macro]] = {
    ("all", 2): partial(_one_variable, "all"),
    ("exists", 2): partial(_one_variable, "exists"),
    ("exists_one", 2): partial(_one_variable, "existsOne"),
    ("existsOne", 2): partial(_one_variable, "existsOne"),
    ("filter", 2): partial(_one_variable, "filter"),
    ("map", 2): _map,
    ("map", 3): _map,
    ("all", 3): partial(_two_variables, "all"),
    ("exists", 3): partial(_two_variables, "exists"),
    ("existsOne", 3): partial(_two_variables, "existsOne"),
    ("transformList", 3): partial(_transform, "transformList"),
    ("transformList", 4): partial(_transform, "transformList"),
    ("transformMap", 3): partial(_transform, "transformMap"),
    ("transformMap", 4): partial(_transform, "transformMap"),
    ("transformMapEntry", 3): partial(_transform, "transformMapEntry"),
    ("transformMapEntry", 4): partial(_transform, "transformMapEntry"),
    ("optMap", 2): partial(_optional, "map"),
    ("optFlatMap", 2): partial(_optional, "flatMap"),
    ("bind", 3): _bind,
}
"""By name and number of arguments, for those that stand behind a target."""
