"""Field errors: what is wrong with one field, as apimachinery's `util/validation/field` words it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final

from trainer.devcluster.apiserver.status import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

OMITTED: Final = object()
"""Stands for a value that is too large or too secret to be repeated in a message."""


def invalid(path: str, value: object, detail: str) -> Cause:
    """The value breaks a rule."""
    shown = "" if value is OMITTED else f": {show(value)}"
    return Cause("FieldValueInvalid", f"Invalid value{shown}: {detail}", path)


def type_invalid(path: str, value: object, detail: str) -> Cause:
    """The value is of the wrong type."""
    return Cause("FieldValueTypeInvalid", f"Invalid value: {show(value)}: {detail}", path)


def required(path: str, detail: str = "") -> Cause:
    """The field must be there."""
    return Cause("FieldValueRequired", _with_detail("Required value", detail), path)


def forbidden(path: str, detail: str) -> Cause:
    """The field may not be set, or not be changed, here."""
    return Cause("FieldValueForbidden", _with_detail("Forbidden", detail), path)


def not_found(path: str, value: object) -> Cause:
    """The field names something that does not exist."""
    return Cause("FieldValueNotFound", f"Not found: {show(value)}", path)


def duplicate(path: str, value: object) -> Cause:
    """The value occurs twice where it has to be unique."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {show({} if value is OMITTED else value)}", path)


def not_supported(path: str, value: object, supported: Iterable[object]) -> Cause:
    """The value is none of the allowed ones."""
    allowed = ", ".join(show(option if isinstance(option, str) else show(option)) for option in supported)
    return Cause("FieldValueNotSupported", f"Unsupported value: {show(value)}: supported values: {allowed}", path)


def too_long(path: str, limit: int) -> Cause:
    """The text has more than `limit` characters; the server's message says bytes."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", path)


def too_many(path: str, actual: int, limit: int) -> Cause:
    """The list or map has more than `limit` entries."""
    return Cause("FieldValueTooMany", f"Too many: {actual}: must have at most {limit} items", path)


def show(value: object) -> str:
    """A value as messages show it: texts quoted, numbers as Go prints them, the rest as compact JSON."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return json.dumps(value, ensure_ascii=False)


def number(value: float) -> str:
    """A number as Go's `%v` prints a float64: `10`, `1.5`, `1e+21`."""
    if isinstance(value, int) and abs(value) < 10**21:
        return str(value)
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    magnitude = abs(value)
    if magnitude != 0 and not 1e-4 <= magnitude < 1e21:
        digits, exponent = f"{value!r}".split("e") if "e" in f"{value!r}" else f"{value:e}".split("e")
        return f"{digits.removesuffix('.0')}e{int(exponent):+03d}"
    return str(int(value)) if value == int(value) else repr(value)


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text
