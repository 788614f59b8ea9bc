"""Embedded objects: parts of a custom resource that are whole objects themselves.

Source: Kubernetes documentation, "RawExtension"; texts are those of the API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer.kube.api_semantics.json_values import writable_copy
from trainer.kube.field_errors import FieldError, invalid, required
from trainer_devcluster.apiserver.objects.built_in_types import object_meta
from trainer_devcluster.apiserver.objects.decoding import WrongTypeError, normalize
from trainer_devcluster.apiserver.objects.metadata import validate_mutable
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems, service_label_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Schema = Mapping[str, Any]

_EMBEDDED: Final = "x-kubernetes-embedded-resource"


def has_embedded(schema: Schema) -> bool:
    """Whether a schema describes embedded objects anywhere below its root."""
    nested = [*(schema.get("properties") or {}).values(), schema.get("additionalProperties"), schema.get("items")]
    return any(isinstance(each, dict) and (each.get(_EMBEDDED) or has_embedded(each)) for each in nested)


def check_embedded(value: object, schema: Schema, path: str) -> Iterator[FieldError]:
    """What is wrong with the embedded objects in a value.

    Args:
        value: any JSON value.
        schema: its structural schema.
        path: where it is.
    """
    if isinstance(value, list):
        items = schema.get("items") or {}
        for index, item in enumerate(value):
            yield from check_embedded(item, items, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    if schema.get(_EMBEDDED):
        yield from _check(value, path)
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, child in value.items():
        if name in properties:
            yield from check_embedded(child, properties[name], f"{path}.{name}" if path else name)
        elif isinstance(additional, dict):
            yield from check_embedded(child, additional, f"{path}[{name}]")


def _check(obj: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for field in ("apiVersion", "kind"):
        if field not in obj:
            yield required(f"{path}.{field}", "must not be empty")
        elif not isinstance(obj[field], str):
            yield invalid(f"{path}.{field}", obj[field], "must be a string")
        elif not obj[field]:
            yield invalid(f"{path}.{field}", "", "must not be empty")
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if isinstance(api_version, str) and api_version.count("/") > 1:
        yield invalid(f"{path}.apiVersion", api_version, f"unexpected GroupVersion string: {api_version}")
    if isinstance(kind, str) and kind:
        problems = service_label_problems(kind.lower())
        if problems:
            detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            yield invalid(f"{path}.kind", kind, detail)
    if "metadata" in obj:
        yield from _check_metadata(obj["metadata"], f"{path}.metadata")


def _check_metadata(given: object, path: str) -> Iterator[FieldError]:
    if not isinstance(given, dict):
        yield invalid(path, given, "must be an object")
        return
    metadata = writable_copy(given)
    try:
        object_meta().prune(metadata)
        normalize(metadata, object_meta())
    except WrongTypeError as error:
        yield invalid(path, given, str(error))
        return
    name = metadata.get("name") or ""
    for problem in name_problems(name, NameRule.PATH_SEGMENT) if name else ():
        yield invalid(f"{path}.name", name, problem)
    for cause in validate_mutable(metadata):
        yield FieldError(path + cause.field.removeprefix("metadata"), cause.message, cause.reason)
