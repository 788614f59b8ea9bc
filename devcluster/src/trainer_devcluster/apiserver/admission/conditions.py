"""Match conditions: CEL expressions that decide whether a webhook is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainer_devcluster.apiserver.admission import access_checks
from trainer_devcluster.apiserver.cel import types
from trainer_devcluster.apiserver.cel.errors import CompileError, EvaluationError
from trainer_devcluster.apiserver.cel.library import FUNCTIONS
from trainer_devcluster.apiserver.cel.program import compile_expression
from trainer_devcluster.apiserver.cel.signatures import merged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.cel.program import Program

VARIABLES: Final = {
    "object": types.DYN,
    "oldObject": types.DYN,
    "request": types.DYN,
    "authorizer": access_checks.AUTHORIZER,
}
"""What expressions may refer to."""
_FUNCTIONS: Final = merged(FUNCTIONS, access_checks.FUNCTIONS)


class ConditionError(Exception):
    """A condition that cannot be evaluated for a request; the failure policy decides what follows."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One entry of `matchConditions`."""

    name: str
    program: Program

    @classmethod
    def compile(cls, name: str, expression: str) -> Condition:
        """Compile an expression.

        Raises:
            ValueError: it is no CEL, refers to what is not there, or is not always a bool.
        """
        try:
            program = compile_expression(expression, VARIABLES, _FUNCTIONS)
        except CompileError as error:
            raise ValueError(f"compilation failed: {error}") from error
        if program.result != types.BOOL:
            raise ValueError("must evaluate to bool")
        return cls(name, program)

    def holds(self, variables: Mapping[str, Any]) -> bool:
        """Whether it is true of a request.

        Raises:
            ConditionError: it cannot be evaluated.
        """
        source = self.program.source
        try:
            result = self.program.evaluate(variables)
        except EvaluationError as error:
            raise ConditionError(f"expression '{source}' resulted in error: {error}") from error
        if not isinstance(result, bool):
            raise ConditionError(f"expression '{source}' resulted in error: it must evaluate to bool")
        return result


def all_hold(conditions: tuple[Condition, ...], request: Object, requester: access_checks.Requester) -> bool:
    """Whether every condition is true of a request; one that is false decides, whatever else fails.

    Args:
        conditions: those of a webhook.
        request: the `request` of an AdmissionReview.
        requester: who sends it.

    Raises:
        ConditionError: none is false, and some cannot be evaluated.
    """
    variables = {
        "object": request.get("object"),
        "oldObject": request.get("oldObject"),
        "request": request,
        "authorizer": requester,
    }
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
