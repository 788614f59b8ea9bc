"""Programs: expressions that have been checked and can be evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer_devcluster.apiserver.cel.checker import check
from trainer_devcluster.apiserver.cel.cost import estimate_cost
from trainer_devcluster.apiserver.cel.errors import CompileError, EvaluationError, Issue
from trainer_devcluster.apiserver.cel.interpreter import compile_node
from trainer_devcluster.apiserver.cel.library import FUNCTIONS
from trainer_devcluster.apiserver.cel.parser import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_devcluster.apiserver.cel.call_costs import SizeOf
    from trainer_devcluster.apiserver.cel.interpreter import Code
    from trainer_devcluster.apiserver.cel.ranges import Range
    from trainer_devcluster.apiserver.cel.signatures import Functions
    from trainer_devcluster.apiserver.cel.types import Type


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression; immutable and safe to share between threads."""

    source: str
    result: Type
    """Type of its value, as far as it is known."""
    variables: frozenset[str]
    """Declared variables that it uses."""
    code: Code
    cost: Range | None = None
    """The least and the most that evaluating it can cost; None when nobody has said how large values are."""

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The value of the expression.

        Args:
            variables: values of the declared variables; see `values` for how they are held.

        Raises:
            EvaluationError: it has no value.
        """
        try:
            return self.code(dict(variables))
        except RecursionError as error:
            raise EvaluationError("evaluation is nested too deeply") from error


def compile_expression(
    source: str, variables: Mapping[str, Type], functions: Functions = FUNCTIONS, size_of: SizeOf | None = None
) -> Program:
    """Compile an expression.

    Args:
        source: its text.
        variables: what it may refer to.
        functions: what it may call; the default is the whole library.
        size_of: how large the variables and what is in them may be, to estimate the cost; the default does not.

    Raises:
        CompileError: it is no expression, refers to what is not there, or cannot be right for any values.
    """
    try:
        node = parse(source)
        checked = check(node, variables, functions)
    except RecursionError as error:
        raise CompileError(source, [Issue(0, "expression recursion limit exceeded")]) from error
    if checked.issues:
        raise CompileError(source, checked.issues)
    code = compile_node(node, functions, checked.qualified)
    cost = None if size_of is None else estimate_cost(node, checked, size_of)
    return Program(source, checked.result, checked.variables, code, cost)
