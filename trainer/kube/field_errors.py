"""Field errors: what is wrong with one field, as apimachinery's `util/validation/field` words it.

`str()` of one reads as Kubernetes prints it: `spec.trainer.numNodes: Invalid value: -1: must be at least 1`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from dataclasses import field as _field
from itertools import islice
from typing import Final

from trainer.kube.objects import Object

MOST_ERRORS: Final = 50
"""Errors of one object that are reported: its author decides how many there are, and nobody reads more."""

_LONGEST_VALUE: Final = 1000
"""Characters of a value that a message repeats."""

_LISTED: Final = 16
_LONGEST_NAME: Final = 100
"""Names that a message lists, and characters of each of them."""

OMITTED: Final = object()
"""Stands for a value that is too large or too secret to be repeated in a message."""


@dataclass(frozen=True, slots=True, order=True)
class FieldError:
    """An error in one field of an object or request, worded for the person who wrote it."""

    field: str
    """Path such as `spec.parts[0].name`; "" is the object itself."""
    message: str
    """Text without the field path: `Invalid value: 11: must be at most 10`."""
    reason: str = "FieldValueInvalid"
    """A CauseType of metav1.StatusCause."""
    code: str = ""
    """A code that distinguishes errors of one reason, for programs. Defaults to none."""
    detail: str = _field(default="", compare=False)
    """The message without its reason and value: the rule that the field breaks. Defaults to none."""
    origin: str = _field(default="", compare=False)
    """The object that the path begins with, such as `ClusterWidget/blueprint`. Defaults to the one that was written."""

    @property
    def path(self) -> str:
        """The path inside of `origin`."""
        return self.field.removeprefix(f"{self.origin} ")

    def to_object(self) -> Object:
        """The entry of `details.causes` in a Status."""
        return {"reason": self.reason, "message": self.message, "field": self.field}

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


MORE_ERRORS: Final = FieldError("", f"there are more errors; these are the first {MOST_ERRORS}")
"""Stands for all errors after the first ones."""


def first_errors(errors: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """The first `MOST_ERRORS`, then `MORE_ERRORS` where there are more; of these only one is asked for."""
    found = tuple(islice(errors, MOST_ERRORS + 1))
    if len(found) <= MOST_ERRORS:
        return found
    return (*found[:MOST_ERRORS], MORE_ERRORS)


def invalid(path: str, value: object, detail: str) -> FieldError:
    """The value breaks a rule."""
    shown = "" if value is OMITTED else f": {show(value)}"
    return FieldError(path, f"Invalid value{shown}: {detail}", detail=detail)


def type_invalid(path: str, value: object, detail: str) -> FieldError:
    """The value is of the wrong type."""
    return FieldError(path, f"Invalid value: {show(value)}: {detail}", "FieldValueTypeInvalid", detail=detail)


def required(path: str, detail: str = "") -> FieldError:
    """The field must be there."""
    return FieldError(path, _with_detail("Required value", detail), "FieldValueRequired", detail=detail)


def forbidden(path: str, detail: str, *, code: str = "") -> FieldError:
    """The field may not be set, or not be changed, here."""
    return FieldError(path, _with_detail("Forbidden", detail), "FieldValueForbidden", code, detail)


def not_found(path: str, value: object, detail: str = "") -> FieldError:
    """The field names something that does not exist."""
    return FieldError(path, _with_detail(f"Not found: {show(value)}", detail), "FieldValueNotFound")


def duplicate(path: str, value: object) -> FieldError:
    """The value occurs twice where it has to be unique."""
    return FieldError(path, f"Duplicate value: {show({} if value is OMITTED else value)}", "FieldValueDuplicate")


def not_supported(path: str, value: object, supported: Iterable[object]) -> FieldError:
    """The value is none of the allowed ones."""
    allowed = ", ".join(show(option if isinstance(option, str) else show(option)) for option in supported)
    return FieldError(path, f"Unsupported value: {show(value)}: supported values: {allowed}", "FieldValueNotSupported")


def too_long(path: str, limit: int) -> FieldError:
    """The text has more than `limit` characters; the server's message says bytes."""
    return FieldError(path, f"Too long: may not be more than {limit} bytes", "FieldValueTooLong")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    """The list or map has more than `limit` entries."""
    return FieldError(path, f"Too many: {actual}: must have at most {limit} items", "FieldValueTooMany")


def listed(names: Sequence[str], most: int = _LISTED) -> str:
    """Names in a message: the first ones, and how many more there are, for there may be thousands; else `none`."""
    shown = ", ".join(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..." for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown or "none"


def show(value: object) -> str:
    """A value as messages show it: texts quoted, numbers as Go prints them, the rest as compact JSON; cut when long."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict | list):
        return _cut(json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True))
    return json.dumps(_cut(value) if isinstance(value, str) else value, ensure_ascii=False)


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


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
