"""values.schema.json: what may be set, from the values themselves and the model of the configuration."""

from __future__ import annotations

from typing import Any, Final

from trainer.configuration.configuration import Configuration
from trainer.kube.objects import Object

_DEFAULT_OF_THE_CHART: Final = {"const": "", "description": "The chart names it."}
_RULES: Final[dict[str, Object]] = {
    "apiVersion": {"enum": ["v1alpha1", "v2alpha1"]},
    "dashboard.args": {"type": "array", "items": {"type": "string"}},
    "dashboard.replicas": {"type": "integer", "minimum": 0},
    "dashboard.resources": {"type": "object"},
    "history.args": {"type": "array", "items": {"type": "string"}},
    "history.databaseSecret": {"type": "string", "pattern": "^[a-z0-9.-]*$"},
    "history.resources": {"type": "object"},
    "image.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "image.repository": {"type": "string", "minLength": 1},
    "manager.config": {"$ref": "#/$defs/Configuration"},
    "manager.replicas": {"type": "integer", "minimum": 0},
    "manager.resources": {"type": "object"},
    "manager.securityContext": {"type": "object"},
    "monitoring.alerts.runbooks": {"type": "string", "pattern": r"^https?://[^\s\"\\{}]+$"},
    "runtimes.installer.resources": {"type": "object"},
    "webhook.failurePolicy": {"enum": ["Fail", "Ignore"]},
}
"""What the default of a value does not tell."""
_TYPES: Final = {bool: "boolean", str: "string", list: "array"}


def values_schema(values: Object) -> Object:
    """The schema of the values of the chart, whose defaults these are."""
    # Subcharts and parents of a chart share `global`.
    schema = _schema(values, "")
    schema["properties"]["global"] = {"type": "object"}
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema, "$defs": _definitions()}


def _schema(value: Any, path: str) -> Object:
    if path in _RULES:
        return _RULES[path]
    if not isinstance(value, dict):
        return {"type": _TYPES[type(value)]}
    if not value:
        return {"type": "object"}
    properties = {name: _schema(inner, f"{path}.{name}".lstrip(".")) for name, inner in value.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _definitions() -> dict[str, Object]:
    """The configuration file and its sections."""
    schema = Configuration.model_json_schema(by_alias=True)
    definitions: dict[str, Object] = schema.pop("$defs")
    for section in (schema, *definitions.values()):
        section["additionalProperties"] = False
        for field in section["properties"].values():
            for variant in (field, *field.get("anyOf", ())):
                # Durations are those of Kubernetes, such as 15s.
                variant.pop("format", None)
    for name in ("apiVersion", "kind"):
        del schema["properties"][name]
    del definitions["ControllersConfiguration"]["properties"]["v1"]  # the value controllers.v1 says it
    del definitions["V1JobsConfiguration"]
    names = definitions["CertManagementConfiguration"]["properties"]
    names["webhookServiceName"] = names["webhookSecretName"] = _DEFAULT_OF_THE_CHART
    return definitions | {"Configuration": schema}
