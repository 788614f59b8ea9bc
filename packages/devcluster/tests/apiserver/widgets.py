"""A custom resource with every kind of schema node; the answers expected for it are those of a real API server."""

from __future__ import annotations

from typing import Any

from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.resource_definition import Column, ResourceDefinition, ScalePaths
from trainer_devcluster.apiserver.definitions.strategy import SchemaStrategy
from trainer_devcluster.apiserver.schema.structural import StructuralSchema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 10, "format": "int32"},
                "mode": {"type": "string", "enum": ["fast", "slow"], "default": "slow"},
                "ref": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "minLength": 1, "maxLength": 20},
                        "kind": {"type": "string", "default": "Thing"},
                    },
                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "field is immutable"}],
                },
                "pattern": {"type": "string", "pattern": "^[a-z]+$"},
                "port": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "replicas": {"type": "integer", "default": 1},
                "deadline": {"type": "integer", "format": "int64", "minimum": 1},
                "tags": {
                    "type": "array",
                    "items": {"type": "string", "maxLength": 8},
                    "maxItems": 3,
                    "x-kubernetes-list-type": "set",
                },
                "parts": {
                    "type": "array",
                    "maxItems": 8,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string", "maxLength": 20},
                            "weight": {"type": "integer"},
                            "unit": {"type": "string", "default": "kg"},
                        },
                    },
                },
            },
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.deadline) || self.deadline >= self.size",
                    "message": "deadline must not be less than size",
                }
            ],
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string"},
                "progress": {"type": "integer", "minimum": 0, "maximum": 100},
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {
                        "type": "object",
                        "required": ["type", "status"],
                        "properties": {
                            "type": {"type": "string"},
                            "status": {"type": "string"},
                            "lastTransitionTime": {"type": "string", "format": "date-time"},
                        },
                    },
                },
            },
        },
    },
}

WIDGET_SCHEMA = StructuralSchema.from_crd(SCHEMA)
WIDGETS = Resource("conformance.example.com", "v1", "widgets", "Widget")
WIDGET = ResourceDefinition(
    WIDGETS,
    SchemaStrategy(WIDGET_SCHEMA),
    singular="widget",
    short_names=("wid",),
    categories=("all",),
    status_subresource=True,
    scale=ScalePaths(".spec.replicas", ".status.replicas", ".status.selector"),
    columns=(
        Column("State", "string", ".status.conditions[-1:].type"),
        Column("Progress %", "integer", ".status.progress"),
        Column("Mode", "string", ".spec.mode", description="how it runs", priority=1),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
    schema=WIDGET_SCHEMA,
)


def widget(spec: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A widget called `a`; without a spec when None."""
    obj = {
        "apiVersion": WIDGETS.api_version,
        "kind": WIDGETS.kind,
        "metadata": {"name": "a", "namespace": "ns"},
        **fields,
    }
    return obj if spec is None else {**obj, "spec": spec}
