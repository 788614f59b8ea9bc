"""Causes of wrong fields, in the words of the Kubernetes API server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trainer.devcluster.apiserver.status import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

IMMUTABLE = "field is immutable"


def required(field: str, detail: str = "") -> Cause:
    """The field is missing."""
    return Cause("FieldValueRequired", f"Required value: {detail}" if detail else "Required value", field)


def invalid(field: str, value: object, detail: str) -> Cause:
    """The field has a value that it may not have."""
    return Cause("FieldValueInvalid", f"Invalid value: {_shown(value)}: {detail}", field)


def not_supported(field: str, value: object, supported: Iterable[str]) -> Cause:
    """The field has a value that is not one of a fixed set."""
    listed = ", ".join(_shown(choice) for choice in sorted(supported))
    return Cause("FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {listed}", field)


def forbidden(field: str, detail: str) -> Cause:
    """The field may not be set, or not be changed, here."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def not_found(field: str, value: object) -> Cause:
    """The field names something that does not exist."""
    return Cause("FieldValueNotFound", f"Not found: {_shown(value)}", field)


def duplicate(field: str, value: object) -> Cause:
    """The value occurs more than once in a set."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {_shown(value)}", field)


def too_long(field: str, limit: int) -> Cause:
    """The value has more than `limit` bytes."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def unchanged(field: str, new: object, old: object) -> list[Cause]:
    """A complaint when an immutable field has changed."""
    return [] if new == old else [invalid(field, new, IMMUTABLE)]


def not_negative(field: str, value: Any) -> list[Cause]:
    """A complaint when a number is there and below zero, or is no whole number."""
    if value is None:
        return []
    if not isinstance(value, int) or isinstance(value, bool):
        return [invalid(field, value, "must be an integer")]
    return [] if value >= 0 else [invalid(field, value, "must be greater than or equal to 0")]


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
