"""Match conditions: CEL expressions that decide whether a webhook is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import cel

from trainer.devcluster.apiserver.celtypes import (
    EVALUATION_ERRORS,
    describe_error,
    functions_of,
    parse_error,
    undeclared,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer.kube.objects import Object

VARIABLES: Final = frozenset({"object", "oldObject", "request"})
"""What expressions may refer to; there is no `authorizer` here."""


class ConditionError(Exception):
    """A condition that cannot be evaluated for a request; the failure policy decides what follows."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One entry of `matchConditions`."""

    name: str
    expression: str
    program: Any
    functions: Mapping[str, Callable[..., Any]]

    @classmethod
    def compile(cls, name: str, expression: str) -> Condition:
        """Compile an expression.

        Raises:
            ValueError: it is no CEL, or refers to what is not there.
        """
        try:
            program = cel.compile(expression)
        except ValueError as error:
            raise ValueError(parse_error(error)) from error
        problem = undeclared(program, expression, VARIABLES)
        if problem:
            raise ValueError(problem)
        return cls(name, expression, program, functions_of([program]))

    def holds(self, variables: Mapping[str, Any]) -> bool:
        """Whether it is true of a request.

        Raises:
            ConditionError: it cannot be evaluated.
        """
        try:
            context = cel.Context(variables=dict(variables), functions=dict(self.functions))
            result = self.program.execute(context)
        except EVALUATION_ERRORS as error:
            raise ConditionError(
                f"expression '{self.expression}' resulted in error: {describe_error(error)}"
            ) from error
        if not isinstance(result, bool):
            raise ConditionError(f"expression '{self.expression}' resulted in error: it must evaluate to bool")
        return result


def all_hold(conditions: tuple[Condition, ...], request: Object) -> bool:
    """Whether every condition is true of the `request` of an AdmissionReview.

    A condition that is false decides, whatever else fails.

    Raises:
        ConditionError: none is false, and some cannot be evaluated.
    """
    variables = {"object": request.get("object"), "oldObject": request.get("oldObject"), "request": request}
    problems: list[str] = []
    for condition in conditions:
        try:
            if not condition.holds(variables):
                return False
        except ConditionError as error:
            problems.append(str(error))
    if problems:
        raise ConditionError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return True
