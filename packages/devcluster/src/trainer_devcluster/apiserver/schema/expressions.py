"""Expressions in the Common Expression Language (CEL), evaluated by Google's library.

Variables have no declared types, so what does not fit together shows when an expression is evaluated. The library ends
an evaluation after 10,000 steps of comprehensions, and refuses texts that are too long or nested too deeply. One step
may scan a long text or a whole list, and an evaluation cannot be interrupted, so its cost is estimated beforehand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

_STATUS: Final = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
"""What the library writes around the texts of errors."""
_COMPREHENSION: Final = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(")
_SCAN: Final = re.compile(r"\bin\b|\.\s*(?:map|filter)\s*\(")
"""What takes time in the length of a list at every step; the library copies the result so far."""
_MAX_STEPS: Final = 10_000
_STEP_COST: Final = 20
_BYTES_PER_COST: Final = 8
COST_LIMIT: Final = 20_000_000
"""Cost of the expressions that are evaluated for one object: about one second."""


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

    def cost(self, variables: Mapping[str, Any]) -> int:
        """About what the comprehensions of an evaluation cost; 0 without one.

        Args:
            variables: JSON values by name; only fields that the expression names are counted.
        """
        comprehensions = len(_COMPREHENSION.findall(self.source))
        if not comprehensions:
            return 0
        entries, text = _extent(variables, frozenset(re.findall(r"\w+", self.source)))
        steps = min(math.prod([entries] * min(comprehensions, 14)), _MAX_STEPS)
        scanned = entries if _SCAN.search(self.source) else 0
        return steps * (_STEP_COST + scanned + text // _BYTES_PER_COST)

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


def _extent(variables: Mapping[str, Any], names: frozenset[str]) -> tuple[int, int]:
    """The length of the longest list or map, and that of the longest text, in the fields of these names."""
    entries = text = 1
    pending: list[Any] = [value for name, value in variables.items() if name in names]
    while pending:
        match pending.pop():
            case str() as value:
                text = max(text, len(value))
            case list() as value:
                entries = max(entries, len(value))
                pending += value
            case dict() as value:
                entries = max(entries, len(value))
                pending += (child for name, child in value.items() if name in names)
    return entries, text


@cache
def _environment(variables: tuple[str, ...]) -> cel.Env:
    extensions = [ext_optional.ExtOptional(), ext_strings.ExtStrings(), ext_bindings.ExtBindings()]
    return cel.NewEnv(variables=dict.fromkeys(variables, cel.Type.DYN), extensions=extensions)
