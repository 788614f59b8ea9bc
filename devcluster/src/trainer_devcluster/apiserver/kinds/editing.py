"""Small changes to parts of an object, in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainer.kube.objects import Object


def fill(obj: Object, **defaults: object) -> None:
    """Set the fields that are absent, null or an empty text, which all are the same to built-in kinds."""
    for field, value in defaults.items():
        if (present := obj.get(field)) is None or present == "":
            obj[field] = value


def section(obj: Object, field: str) -> Object:
    """The object in a field, made when absent; {} that is not stored when something else stands there."""
    value = obj.get(field)
    if value is None:
        value = obj[field] = {}
    return value if isinstance(value, dict) else {}


def take_over(target: Object, source: Object, fields: Iterable[str]) -> None:
    """Make the fields of `target` what they are in `source`, absent ones included."""
    for field in fields:
        target.pop(field, None)
        if field in source:
            target[field] = source[field]
