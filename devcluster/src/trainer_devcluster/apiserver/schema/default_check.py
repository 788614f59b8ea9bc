"""Checks of defaults: they have to be what the schema around them asks for, without anything that would be pruned."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from trainer.kube.api_semantics.value_types import Typing
from trainer.kube.field_errors import invalid
from trainer_devcluster.apiserver.schema.duplicates import duplicates
from trainer_devcluster.apiserver.schema.embedded import check_embedded
from trainer_devcluster.apiserver.schema.validation import validate_value
from trainer_devcluster.apiserver.schema.validation_rules import compile_rules

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError

    Schema = dict[str, Any]


def check_defaults(schema: Schema, path: str) -> list[FieldError]:
    """What is wrong with the defaults of a structural schema.

    Args:
        schema: the schema; defaults below `additionalProperties` are not looked at, they are refused elsewhere.
        path: where it is in its definition.
    """
    causes: list[FieldError] = []
    if schema.get("default") is not None:
        causes += _check(schema["default"], schema, f"{path}.default")
    for name, child in (schema.get("properties") or {}).items():
        causes += check_defaults(child, f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), dict):
        causes += check_defaults(schema["items"], f"{path}.items")
    return causes


def _check(default: Any, schema: Schema, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    pruned = {"default": copy.deepcopy(default)}
    Typing({"type": "object", "properties": {"default": schema}}).prune(pruned)
    if pruned["default"] != default:
        causes.append(invalid(path, default, "must not have unknown fields"))
    wrong = list(check_embedded(default, schema, path)) or validate_value(default, schema, prefix=path)
    wrong = wrong or duplicates(default, schema, path)
    if wrong:
        return causes + wrong
    rules, problems = compile_rules(schema)
    return causes if problems else [*causes, *rules.validate(default, path=path)]
