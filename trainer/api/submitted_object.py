"""What is wrong with an object as its author writes it, found before it is sent: the field, and what to write instead.

The API server prunes fields that it does not know, and says so in a warning only: a strict model refuses them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from trainer.api import patterns
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.labels import check_metadata
from trainer.api.model import ApiModel
from trainer.kube.field_errors import FieldError, invalid, required, too_long, type_invalid
from trainer.kube.objects import Object

_NO_UTF8: Final = "must be text in UTF-8: remove the half of a surrogate pair, such as \\ud800"


def text_errors(content: object) -> Iterator[FieldError]:
    """The first text that UTF-8 cannot say: YAML and JSON can write halves of surrogate pairs as escapes."""
    for field in islice(_undecodable(content, ""), 1):
        yield FieldError(field, _NO_UTF8)


def identity_errors(content: Object) -> Iterator[FieldError]:
    """A missing name, or one that is no text."""
    metadata = content.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        yield required("metadata.name")
        return
    for field in ("name", "generateName", "namespace"):
        if not isinstance(metadata.get(field) or "", str):
            yield type_invalid(f"metadata.{field}", metadata[field], "must be a string")


def object_errors(content: Object, model: type[ApiModel] | None) -> list[FieldError]:
    """What is wrong with an object that has an identity: with its names, else with its fields, else with its labels.

    Args:
        content: the object.
        model: what it has to fit. None: its names alone are checked.
    """
    metadata = content["metadata"]
    if errors := [*_name_errors(metadata)]:
        return errors
    if model is None:
        return []
    try:
        model.from_object(content, strict=True)
    except InvalidObjectError as error:
        return [*error.errors]
    return [*check_metadata(metadata, "metadata")]


def _undecodable(value: object, path: str) -> Iterator[str]:
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            yield path
    elif isinstance(value, dict):
        for name, member in value.items():
            shown = str(name).encode(errors="backslashreplace").decode()
            child = f"{path}.{shown}" if path else shown
            yield from _undecodable(name, child)
            yield from _undecodable(member, child)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _undecodable(member, f"{path}[{index}]")


def _name_errors(metadata: Object) -> Iterator[FieldError]:
    """Names that every API server refuses, whatever the kind."""
    name, prefix, namespace = (metadata.get(field) or "" for field in ("name", "generateName", "namespace"))
    for field, value, pattern, longest in (
        ("name", name, patterns.OBJECT_NAME, 253),
        ("generateName", "" if name else prefix.rstrip("-."), patterns.OBJECT_NAME, 253),
        ("namespace", namespace, patterns.DNS_LABEL, 63),
    ):
        if value and not patterns.compiled(pattern).search(value):
            yield invalid(f"metadata.{field}", metadata[field], patterns.WORDS[pattern])
        elif len(value) > longest:
            yield too_long(f"metadata.{field}", longest)
