"""Entries of `x-kubernetes-validations`: what is wrong with one besides its expressions.

Source: Kubernetes documentation, "Validation rules"; texts are those of the API server.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from trainer.kube.field_errors import invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer.kube.field_errors import FieldError

    Schema = Mapping[str, Any]

_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_PATH: Final = re.compile(r"(?:\.[A-Za-z_]\w*|\['(?:\\.|[^'\\])*'\])+")
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\['((?:\\.|[^'\\])*)'\]")


def check_entry(entry: Mapping[str, Any], schema: Schema, path: str) -> list[FieldError]:
    """What is wrong with the texts of an entry.

    Args:
        entry: the entry.
        schema: the schema in which it stands.
        path: where it is in the definition.
    """
    rule, message = str(entry.get("rule") or ""), str(entry.get("message") or "")
    causes: list[FieldError] = []
    if not rule.strip():
        causes.append(required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        causes.append(invalid(f"{path}.message", message, "message must be non-empty if specified"))
    elif _has_line_breaks(message.strip()):
        causes.append(invalid(f"{path}.message", message, "message must not contain line breaks"))
    elif _has_line_breaks(rule.strip()) and not message.strip():
        causes.append(required(f"{path}.message", "message must be specified if rule contains line breaks"))
    expression = str(entry.get("messageExpression") or "")
    if expression and not expression.strip():
        causes.append(required(f"{path}.messageExpression", "messageExpression must be non-empty if specified"))
    reason = entry.get("reason")
    if reason is not None and reason not in _REASONS:
        causes.append(not_supported(f"{path}.reason", reason, _REASONS))
    field_path = str(entry.get("fieldPath") or "")
    if field_path and not field_path.strip():
        causes.append(invalid(f"{path}.fieldPath", field_path, "fieldPath must be non-empty if specified"))
    if _has_line_breaks(field_path):
        causes.append(invalid(f"{path}.fieldPath", field_path, "fieldPath must not contain line breaks"))
    if field_path and schema_at(field_path, schema) is None:
        causes.append(invalid(f"{path}.fieldPath", field_path, "fieldPath must be a valid path"))
    return causes


def field_names(field_path: str) -> Iterator[str]:
    """The names on a `fieldPath` such as `.spec['a-b']`."""
    for match in _STEP.finditer(field_path):
        yield match[1] or re.sub(r"\\(.)", r"\1", match[2])


def schema_at(field_path: str, schema: Schema) -> Schema | None:
    """The schema that a path such as `.spec['a-b']` leads to; None when it leads nowhere."""
    if not _PATH.fullmatch(field_path):
        return None
    current: Any = schema
    for name in field_names(field_path):
        properties, additional = current.get("properties") or {}, current.get("additionalProperties")
        current = properties.get(name, additional)
        if not isinstance(current, dict):
            return None
    found: Schema = current
    return found


def _has_line_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text
