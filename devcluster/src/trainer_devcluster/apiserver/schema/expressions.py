"""Expressions in the Common Expression Language (CEL), evaluated by Google's library.

Variables have no declared types, so what does not fit together shows when an expression is evaluated. The library ends
an evaluation after 10,000 steps of comprehensions, and refuses texts that are too long or nested too deeply.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

if TYPE_CHECKING:
    from collections.abc import Mapping

_STATUS: Final = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
"""What the library writes around the texts of errors."""


class CompileError(ValueError):
    """An expression that cannot be evaluated; the text shows each problem with its place."""


class EvaluationError(Exception):
    """An expression has no value for the variables that it is evaluated with."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression; immutable and safe to share between threads."""

    source: str
    result: str
    """Type of its value: `BOOL`, `STRING` and so on; `DYN` where it depends on the variables."""
    _compiled: cel.Expression

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The value of the expression.

        Args:
            variables: JSON values by name; those that were not declared are ignored.

        Raises:
            EvaluationError: it has no value.
        """
        try:
            found = self._compiled.eval(data=variables)
        except RuntimeError as error:
            raise EvaluationError(_STATUS.sub("", str(error))) from error
        value = found.plain_value()
        if found.type() == cel.Type.ERROR:
            raise EvaluationError(_STATUS.sub("", str(value)))
        return value


@lru_cache(maxsize=1024)
def compile_expression(source: str, variables: tuple[str, ...]) -> Expression:
    """Compile an expression; one that was compiled recently is not compiled again.

    Args:
        source: its text.
        variables: names that it may refer to.

    Raises:
        CompileError: it is no expression, refers to what is not declared, or cannot be right for any values.
    """
    try:
        compiled = _environment(variables).compile(source)
    except RuntimeError as error:
        raise CompileError(_STATUS.sub("", str(error))) from error
    return Expression(source, compiled.return_type().name(), compiled)


@cache
def _environment(variables: tuple[str, ...]) -> cel.Env:
    extensions = [ext_optional.ExtOptional(), ext_strings.ExtStrings(), ext_bindings.ExtBindings()]
    return cel.NewEnv(variables=dict.fromkeys(variables, cel.Type.DYN), extensions=extensions)
