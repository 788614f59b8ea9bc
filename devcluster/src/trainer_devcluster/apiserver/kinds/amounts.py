"""Amounts: what is wrong with quantities and with numbers that may be percentages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer.kube.field_errors import invalid
from trainer.kube.quantity import parse_quantity

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError

_QUANTITY_TEXT: Final = "must be greater than or equal to 0"
NOT_A_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def validate_quantity(path: str, value: Any) -> list[FieldError]:
    """What is wrong with an amount of a resource that cannot be negative."""
    try:
        amount = parse_quantity(value)
    except ValueError:
        return [invalid(path, value, NOT_A_QUANTITY)]
    return [invalid(path, value, _QUANTITY_TEXT)] if amount < 0 else []
