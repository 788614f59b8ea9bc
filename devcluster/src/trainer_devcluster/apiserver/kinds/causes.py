"""Checks that several kinds make of their fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.kube.field_errors import invalid, required
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

IMMUTABLE = "field is immutable"


def unchanged(field: str, new: object, old: object) -> list[FieldError]:
    """A complaint when an immutable field has changed."""
    return [] if new == old else [invalid(field, new, IMMUTABLE)]


def not_negative(field: str, value: Any) -> list[FieldError]:
    """A complaint when a number is there and below zero, or is no whole number."""
    if value is None:
        return []
    if not isinstance(value, int) or isinstance(value, bool):
        return [invalid(field, value, "must be an integer")]
    return [] if value >= 0 else [invalid(field, value, "must be greater than or equal to 0")]


def object_reference(field: str, reference: Object | None) -> list[FieldError]:
    """Complaints about a reference to an object of whichever version (CrossVersionObjectReference)."""
    causes: list[FieldError] = []
    for part in ("kind", "name"):
        text = (reference or {}).get(part)
        if not text:
            causes.append(required(f"{field}.{part}"))
        else:
            problems = name_problems(text, NameRule.PATH_SEGMENT)
            causes += [invalid(f"{field}.{part}", text, problem) for problem in problems]
    return causes
