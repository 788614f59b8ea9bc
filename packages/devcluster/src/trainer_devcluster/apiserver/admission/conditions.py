"""Match conditions: CEL expressions that decide whether a webhook is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trainer.kube.objects import Object
from trainer_devcluster.apiserver.schema.expressions import (
    COST_LIMIT,
    CompileError,
    EvaluationError,
    Expression,
    compile_expression,
)

_VARIABLES: Final = ("object", "oldObject", "request")


class ConditionError(Exception):
    """A condition that cannot be evaluated for a request; the failure policy decides what follows."""


@dataclass(frozen=True, slots=True)
class MatchCondition:
    """One entry of `matchConditions`."""

    name: str
    expression: Expression

    @classmethod
    def compile(cls, name: str, expression: str) -> MatchCondition:
        """Compile an expression.

        Raises:
            ValueError: it is no CEL, refers to what is not there, or is not always a bool.
        """
        try:
            compiled = compile_expression(expression, _VARIABLES)
        except CompileError as error:
            raise ValueError(f"compilation failed: {error}") from error
        if compiled.result != "BOOL":
            raise ValueError("must evaluate to bool")
        return cls(name, compiled)

    def holds(self, variables: Mapping[str, Any]) -> bool:
        """Whether it is true of a request.

        Raises:
            ConditionError: it cannot be evaluated.
        """
        source = self.expression.source
        if self.expression.cost(variables) > COST_LIMIT:
            raise ConditionError(
                f"expression '{source}' resulted in error: it costs too much for an object of this size"
            )
        try:
            result = self.expression.evaluate(variables)
        except EvaluationError as error:
            raise ConditionError(f"expression '{source}' resulted in error: {error}") from error
        if not isinstance(result, bool):
            raise ConditionError(f"expression '{source}' resulted in error: it must evaluate to bool")
        return result


def all_hold(conditions: tuple[MatchCondition, ...], request: Object) -> bool:
    """Whether every condition is true of a request; one that is false decides, whatever else fails.

    Args:
        conditions: those of a webhook.
        request: the `request` of an AdmissionReview.

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
