"""Amounts: what is wrong with quantities and with numbers that may be percentages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from trainer.kube.field_errors import invalid
from trainer.kube.quantity import parse_quantity

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError

_PERCENT: Final = re.compile(r"[0-9]+%")
_PERCENT_TEXT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    f"validation is '{_PERCENT.pattern}')"
)
_QUANTITY_TEXT: Final = "must be greater than or equal to 0"
NOT_A_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def validate_int_or_percent(path: str, value: Any) -> list[FieldError]:
    """What is wrong with a count that may be a share of another: `2`, `25%`."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            return [invalid(path, value, _PERCENT_TEXT)]
        return [invalid(path, value, "must not be greater than 100%")] if int(value[:-1]) > 100 else []
    return [invalid(path, value, "must be greater than or equal to 0")] if value is not None and value < 0 else []


def validate_quantity(path: str, value: Any) -> list[FieldError]:
    """What is wrong with an amount of a resource that cannot be negative."""
    try:
        amount = parse_quantity(value)
    except ValueError:
        return [invalid(path, value, NOT_A_QUANTITY)]
    return [invalid(path, value, _QUANTITY_TEXT)] if amount < 0 else []
