"""OpenAPI v3 documents: what kubectl needs for validation, `explain`, `apply` and `diff`.

Source: KEP-2896. Every resource has its paths with the group, version and kind in extensions; the schemas of built-in
kinds come from `builtin_types.json.gz`, those of custom resources are served as they are.

kubectl asks for a document of OpenAPI v2 when an object is of kind List, which v3 does not describe, and checks no
object whose kind it does not find there, because the server does. So that document is empty.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from trainer.kube.objects import Object
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.discovery.discovery import preference
from trainer_devcluster.apiserver.objects.built_in_types import built_in_definitions, definition_name

_SCHEMAS: Final = "#/components/schemas/"
_CUSTOM_PATCH_TYPES: Final = (
    "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json",
)  # fmt: skip
_PATCH_TYPES: Final = (*_CUSTOM_PATCH_TYPES, "application/strategic-merge-patch+json")
"""kubectl apply sends a strategic merge patch to whatever lists it here."""
_WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
V2_PROTOBUF_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The media type of the answer; the one that Go clients ask for has an at sign, which Go cannot parse."""
V2_DOCUMENT: Final[Object] = {
    "swagger": "2.0",
    "info": {"title": "Kubernetes", "version": "v1.36.0"},
    "paths": {},
    "definitions": {},
}
V2_PROTOBUF: Final = b"\x0a\x032.0" + b"\x12\x15\x0a\x0aKubernetes\x12\x07v1.36.0" + b"\x42\x00" + b"\x4a\x00"
"""The document in protobuf: version, info, paths and definitions."""


class Writer:
    """Writes the documents and keeps what it has written, until another definition of their group takes effect."""

    def __init__(self) -> None:
        self._written: dict[tuple[str, str], tuple[tuple[ResourceDefinition, ...], bytes, str]] = {}
        """By group and version: what is served there, the document, and its digest."""

    def index(self, definitions: Sequence[ResourceDefinition]) -> Object:
        """The document of `/openapi/v3`: where the document of each group and version is."""
        served = {(d.resource.group, d.resource.version) for d in definitions}
        paths = {}
        for group, version in sorted(served, key=lambda entry: (entry[0], preference(entry[1]))):
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            _, _, digest = self._write(definitions, group, version)
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
        return {"paths": paths}

    def document(self, definitions: Sequence[ResourceDefinition], group: str, version: str) -> msgspec.Raw | None:
        """The document of a group and version, encoded; None when nothing is served."""
        if not _served(definitions, group, version):
            return None
        return msgspec.Raw(self._write(definitions, group, version)[1])

    def _write(
        self, definitions: Sequence[ResourceDefinition], group: str, version: str
    ) -> tuple[tuple[ResourceDefinition, ...], bytes, str]:
        served = tuple(_served(definitions, group, version))
        kept = self._written.get((group, version))
        if kept is not None and len(kept[0]) == len(served) and all(map(operator.is_, kept[0], served)):
            return kept
        content = msgspec.json.encode(document(served, group, version))
        written = (served, content, hashlib.sha256(content).hexdigest().upper())
        self._written[group, version] = written
        return written


def document(definitions: Iterable[ResourceDefinition], group: str, version: str) -> Object | None:
    """The document of `/openapi/v3/api/v1` or `/openapi/v3/apis/<group>/<version>`; None when nothing is served."""
    served = _served(definitions, group, version)
    if not served:
        return None
    schemas: dict[str, Any] = {}
    for definition in served:
        name = schema_name(definition)
        schemas[name] = _custom_schema(definition) if definition.is_custom else _built_in_schema(definition)
        schemas[f"{name}List"] = _list_schema(definition, name)
    _add_referenced(schemas)
    paths = {path: item for definition in served for path, item in _paths(definition).items()}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def _served(definitions: Iterable[ResourceDefinition], group: str, version: str) -> list[ResourceDefinition]:
    return [d for d in definitions if (d.resource.group, d.resource.version) == (group, version)]


def schema_name(definition: ResourceDefinition) -> str:
    """Name of a kind's schema: that of the published API for built-in kinds, else from the reversed group."""
    resource = definition.resource
    published = None if definition.is_custom else definition_name(resource.api_version, resource.kind)
    if published is not None:
        return published
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def _kind(definition: ResourceDefinition) -> Object:
    resource = definition.resource
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _custom_schema(definition: ResourceDefinition) -> Object:
    declared = definition.schema.document if definition.schema is not None else {}
    properties = {**(declared.get("properties") or {}), **_envelope()}
    return {**declared, "properties": properties, "x-kubernetes-group-version-kind": [_kind(definition)]}


def _envelope() -> Object:
    """The fields that every object has, described as in built-in kinds."""
    pod = built_in_definitions()["io.k8s.api.core.v1.Pod"]["properties"]
    return {name: _published(pod[name]) for name in ("apiVersion", "kind", "metadata")}


def _built_in_schema(definition: ResourceDefinition) -> Object:
    published = built_in_definitions().get(schema_name(definition))
    schema = _published(published) if published is not None else {"type": "object"}
    return {**schema, "x-kubernetes-group-version-kind": [_kind(definition)]}


def _list_schema(definition: ResourceDefinition, name: str) -> Object:
    return {
        "type": "object",
        "description": f"{definition.collection_kind} is a list of {definition.resource.kind}",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "items": {"type": "array", "items": _reference(name)},
        },
        "x-kubernetes-group-version-kind": [{**_kind(definition), "kind": definition.collection_kind}],
    }


def _reference(name: str) -> Object:
    return {"$ref": f"{_SCHEMAS}{name}"}


def _published(schema: Any) -> Any:
    """A schema from the data file with references as OpenAPI 3.0 writes them: nothing may stand next to `$ref`."""
    if isinstance(schema, list):
        return [_published(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {name: _published(entry) for name, entry in schema.items()}
    name = converted.get("$ref")
    if not isinstance(name, str):
        return converted
    del converted["$ref"]
    return {"allOf": [_reference(name)], **converted} if converted else _reference(name)


def _paths(definition: ResourceDefinition) -> Object:
    resource = definition.resource
    collection = resource.path("{namespace}" if resource.namespaced else None)
    item = f"{collection}/{{name}}"
    paths = {
        collection: _operations(definition, {"list": "get", "create": "post", "deletecollection": "delete"}),
        item: _operations(definition, {"get": "get", "update": "put", "patch": "patch", "delete": "delete"}),
    }
    if resource.namespaced:
        paths[resource.path()] = _operations(definition, {"list": "get"})
    if definition.status_subresource:
        paths[f"{item}/status"] = _operations(definition, {"get": "get", "update": "put", "patch": "patch"})
    return {path: operations for path, operations in paths.items() if operations}


def _operations(definition: ResourceDefinition, methods: dict[str, str]) -> Object:
    return {method: _operation(definition, verb) for verb, method in methods.items() if verb in definition.verbs}


def _operation(definition: ResourceDefinition, verb: str) -> Object:
    name = schema_name(definition)
    answer = _reference(f"{name}List" if verb == "list" else name)
    operation: dict[str, Any] = {
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
        "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": _kind(definition),
    }
    if verb not in _WRITES:
        return operation
    names = ["dryRun"]
    if verb in ("create", "update", "patch"):
        names += ["fieldManager", "fieldValidation"]
        patch_types = _CUSTOM_PATCH_TYPES if definition.is_custom else _PATCH_TYPES
        types = patch_types if verb == "patch" else ("application/json",)
        body = {"type": "object"} if verb == "patch" else _reference(name)
        operation["requestBody"] = {"required": True, "content": {kind: {"schema": body} for kind in types}}
    operation["parameters"] = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
    if verb == "patch":
        operation["parameters"].append({"name": "force", "in": "query", "schema": {"type": "boolean"}})
    return operation


def _add_referenced(schemas: dict[str, Any]) -> None:
    """Add, in place, the built-in types that the schemas refer to, and those that these refer to."""
    waiting = list(schemas.values())
    while waiting:
        for name in _references(waiting.pop()):
            definition = built_in_definitions().get(name)
            if name not in schemas and definition is not None:
                schemas[name] = _published(definition)
                waiting.append(schemas[name])


def _references(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return {name for entry in schema for name in _references(entry)}
    if not isinstance(schema, dict):
        return set()
    found = {name for entry in schema.values() for name in _references(entry)}
    reference = schema.get("$ref")
    return found | {reference.removeprefix(_SCHEMAS)} if isinstance(reference, str) else found


def wants_v2_protobuf(accept: str) -> bool:
    """Whether an Accept header asks for protobuf."""
    return "proto-openapi.spec.v2" in accept and "+protobuf" in accept
