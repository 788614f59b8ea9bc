"""Validation of the environment variables of containers (core/v1 EnvVar and EnvFromSource)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer.kube.field_errors import invalid, required
from trainer_devcluster.apiserver.kinds.pods.field_references import (
    ENVIRONMENT_FIELDS,
    validate_field_reference,
    validate_resource_reference,
)
from trainer_devcluster.apiserver.kinds.pods.lists import objects_in
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)
_NAME_TEXT: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_KEY_TEXT: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_KEY_CHARACTERS: Final = frozenset("-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_MAX_KEY: Final = 253


def validate_environment(container: Object, path: str) -> list[FieldError]:
    """What is wrong with `env` and `envFrom` of the container at `path`."""
    causes: list[FieldError] = []
    for place, variable in objects_in(container.get("env"), f"{path}.env", causes):
        causes += _validate_variable(variable, place)
    for place, source in objects_in(container.get("envFrom"), f"{path}.envFrom", causes):
        causes += _validate_bulk_source(source, place)
    return causes


def _validate_variable(variable: Object, path: str) -> list[FieldError]:
    name, value = variable.get("name"), variable.get("value") or ""
    causes = [required(f"{path}.name")] if not name else _name_causes(name, f"{path}.name")
    if not isinstance(value, str):
        return [*causes, invalid(f"{path}.value", value, "must be a string: quote the value")]
    source = variable.get("valueFrom")
    if source is None:
        return causes
    return causes + _validate_source(source, f"{path}.valueFrom", has_value=bool(value))


def _validate_source(source: Object, path: str, *, has_value: bool) -> list[FieldError]:
    kinds = [kind for kind in _SOURCES if source.get(kind) is not None]
    causes: list[FieldError] = []
    for kind in kinds:
        reference, place = source[kind], f"{path}.{kind}"
        if kind == "fieldRef":
            causes += validate_field_reference(reference, place, ENVIRONMENT_FIELDS)
        elif kind == "resourceFieldRef":
            causes += validate_resource_reference(reference, place)
        elif kind in {"configMapKeyRef", "secretKeyRef"}:
            causes += _validate_key_reference(reference, place)
    if not kinds:
        causes.append(invalid(path, "", _NO_SOURCE))
    elif has_value:
        causes.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(kinds) > 1:
        causes.append(invalid(path, "", "may not have more than one field specified at a time"))
    return causes


def _validate_key_reference(reference: Object, path: str) -> list[FieldError]:
    causes = [] if reference.get("name") else [required(f"{path}.name")]
    key = reference.get("key")
    if not key:
        return [*causes, required(f"{path}.key")]
    return causes + [invalid(f"{path}.key", key, problem) for problem in _key_problems(key)]


def _key_problems(key: str) -> list[str]:
    problems = [] if len(key) <= _MAX_KEY else [f"must be no more than {_MAX_KEY} bytes"]
    if not _KEY_CHARACTERS.issuperset(key):
        return [*problems, _KEY_TEXT]
    if key in {".", ".."}:
        return [*problems, f"must not be '{key}'"]
    return [*problems, "must not start with '..'"] if key.startswith("..") else problems


def _validate_bulk_source(source: Object, path: str) -> list[FieldError]:
    prefix = source.get("prefix")
    causes = _name_causes(prefix, f"{path}.prefix") if prefix else []
    kinds = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
    for kind in kinds:
        name = source[kind].get("name")
        if not name:
            causes.append(required(f"{path}.{kind}.name"))
        else:
            problems = name_problems(name, NameRule.SUBDOMAIN)
            causes += [invalid(f"{path}.{kind}.name", name, problem) for problem in problems]
    if not kinds:
        causes.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
    elif len(kinds) > 1:
        causes.append(invalid(path, "", "may not have more than one field specified at a time"))
    return causes


def _name_causes(name: Any, path: str) -> list[FieldError]:
    is_valid = isinstance(name, str) and all(" " <= character <= "~" and character != "=" for character in name)
    return [] if is_valid else [invalid(path, name, _NAME_TEXT)]
