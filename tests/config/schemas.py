"""The schemas that objects of config/ are held against: Kubernetes', ours, and those of Prometheus Operator."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

from trainer.kube.objects import Object
from trainer.v1alpha1.crds import crds

VERSIONS = ("1.31", "1.37")
"""The oldest Kubernetes that we support, and the newest."""
MONITORING = Path(__file__).with_name("monitoring_crds.yaml")


def check(obj: Object, version: str) -> None:
    """Hold an object against the schema of its kind, in which nothing is allowed that is not there.

    Raises:
        jsonschema.ValidationError: it does not fit.
        kubernetes_validate.SchemaNotFoundError: this version of Kubernetes has no such kind.
    """
    validator = _custom_kinds().get((obj["apiVersion"], obj["kind"]))
    if validator is None:
        kubernetes_validate.validate(obj, version, strict=True)
    else:
        validator.validate(obj)


@cache
def _custom_kinds() -> dict[tuple[str, str], jsonschema.Draft202012Validator]:
    definitions = [*crds(), *crds("v1alpha1"), *yaml.load_all(MONITORING.read_text(encoding="utf-8"), yaml.CSafeLoader)]
    return {
        (f"{definition['spec']['group']}/{version['name']}", definition["spec"]["names"]["kind"]): _validator(version)
        for definition in definitions
        for version in definition["spec"]["versions"]
    }


def _validator(version: Object) -> jsonschema.Draft202012Validator:
    schema = version["schema"]["openAPIV3Schema"]
    # The API server knows it, and definitions leave it out.
    schema["properties"]["metadata"] = {"type": "object"}
    return jsonschema.Draft202012Validator(_closed(schema))


def _closed(schema: Any) -> Any:
    """A structural schema as JSON Schema that refuses what an API server would prune."""
    if not isinstance(schema, dict):
        return schema
    closed = {key: value for key, value in schema.items() if not key.startswith("x-") and key != "nullable"}
    if schema.get("x-kubernetes-int-or-string"):
        closed = {"anyOf": [{"type": "integer"}, {"type": "string"}]} | {
            key: value for key, value in closed.items() if key == "pattern"
        }
    if "properties" in closed:
        closed["properties"] = {name: _closed(inner) for name, inner in closed["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            closed["additionalProperties"] = False
    for key in ("items", "additionalProperties"):
        if isinstance(closed.get(key), dict):
            closed[key] = _closed(closed[key])
    if schema.get("nullable") and "type" in closed:
        closed["type"] = [closed["type"], "null"]
    return closed
