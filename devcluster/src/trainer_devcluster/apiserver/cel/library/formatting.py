"""Formatting: `format` of texts."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import Any, Final

from trainer_devcluster.apiserver.cel.errors import EvaluationError
from trainer_devcluster.apiserver.cel.library.times import duration_text, time_text
from trainer_devcluster.apiserver.cel.values import TypeName, Uint

_CLAUSE: Final = re.compile(r"%(?:%|(?:\.(\d+))?(.?))", re.DOTALL)
_BASES: Final = {"b": "b", "o": "o", "x": "x", "X": "X"}


def formatted(template: str, arguments: list[Any]) -> str:
    """The template with its clauses (%s, %d, %f, %e, %b, %o, %x, %X) filled in.

    Raises:
        EvaluationError: there are too few arguments, or one is of the wrong type.
    """
    values = iter(enumerate(arguments))

    def fill(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        index, value = next(values, (-1, None))
        if index < 0:
            raise EvaluationError(f"index {len(arguments)} out of range")
        return _clause(match[2], match[1], value)

    return _CLAUSE.sub(fill, template)


def _clause(verb: str, precision: str | None, value: Any) -> str:
    if verb == "s":
        return _shown(value)
    if verb == "d" and isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    if verb == "d" and isinstance(value, float) and not math.isfinite(value):
        return _not_finite(value)
    if verb in ("f", "e") and isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, float) and not math.isfinite(value):
            return _not_finite(value)
        return format(float(value), f".{precision or 6}{verb}")
    if verb in _BASES:
        return _in_base(verb, value)
    if verb not in ("d", "f", "e"):
        raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
    wanted = {"d": "an integer", "f": "a double", "e": "a double"}[verb]
    raise EvaluationError(f"error during formatting: %{verb} can only be used with {wanted}")


def _in_base(verb: str, value: Any) -> str:
    if isinstance(value, bool) and verb == "b":
        return "1" if value else "0"
    if isinstance(value, int) and not isinstance(value, bool):
        return format(int(value), _BASES[verb])
    if verb in "xX" and isinstance(value, str | bytes):
        text = (value.encode() if isinstance(value, str) else value).hex()
        return text.upper() if verb == "X" else text
    raise EvaluationError(f"error during formatting: %{verb} can only be used with integers")


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        entries = sorted((_shown(key), _shown(entry)) for key, entry in value.items())
        return "{" + ", ".join(f"{key}: {entry}" for key, entry in entries) + "}"
    if isinstance(value, float):
        return _not_finite(value) if not math.isfinite(value) else repr(value).removesuffix(".0")
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, TypeName):
        return value.name
    return str(int(value)) if isinstance(value, Uint) else str(value)
