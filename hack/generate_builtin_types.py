"""Generate the types of the built-in kinds that the dev cluster's API server knows.

Reads the JSON schemas in the pip package `kubernetes-validate` (version 1.37, needed at development time only) and
keeps what the server works with: property names and types, list and map types, patch strategies, and descriptions.
Run it after a change of the list of kinds, or with a newer version of the package:

    make .venv/.dev && .venv/bin/python hack/generate_builtin_types.py
"""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

VERSION = "v1.37.0"
DEV_CLUSTER = Path(__file__).parents[1] / "packages/devcluster/src/trainer_devcluster"
TARGET = DEV_CLUSTER / "apiserver/objects/builtin_types.json.gz"

KINDS = {
    "v1": (
        "Binding ConfigMap DeleteOptions Endpoints Event LimitRange Namespace Node "
        "PersistentVolumeClaim Pod ResourceQuota Secret Service ServiceAccount"
    ),
    "admissionregistration.k8s.io/v1": "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "apps/v1": "Deployment",
    "authentication.k8s.io/v1": "SelfSubjectReview TokenRequest TokenReview",
    "authorization.k8s.io/v1": (
        "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"
    ),
    "autoscaling/v1": "Scale",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "batch/v1": "Job",
    "coordination.k8s.io/v1": "Lease",
    "discovery.k8s.io/v1": "EndpointSlice",
    "networking.k8s.io/v1": "NetworkPolicy",
    "node.k8s.io/v1": "RuntimeClass",
    "policy/v1": "Eviction PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "scheduling.k8s.io/v1": "PriorityClass",
    "scheduling.k8s.io/v1beta1": "PodGroup Workload",
}
KEPT = (
    "additionalProperties", "format", "items", "properties", "required", "x-kubernetes-group-version-kind",
    "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
)  # fmt: skip
PREFIX = "#/$defs/"


def schema_directory() -> Path:
    """Where the package keeps its schemas."""
    spec = importlib.util.find_spec("kubernetes_validate")
    if spec is None or spec.origin is None:
        raise SystemExit("kubernetes-validate is not installed: make .venv/.dev")
    return Path(spec.origin).parent / "kubernetes-json-schema" / f"{VERSION}-local"


def convert(schema: dict[str, Any]) -> dict[str, Any]:
    """One schema without validation keywords, with a single type and short references."""
    reference = schema.get("$ref")
    kept: dict[str, Any] = {}
    if isinstance(reference, str):
        kept["$ref"] = reference.removeprefix(PREFIX)
    if "description" in schema:
        kept["description"] = schema["description"]
    if "oneOf" in schema:
        number = next(kind for option in schema["oneOf"] for kind in option["type"] if kind not in ("string", "null"))
        kept["x-kubernetes-int-or-string"] = True
        if number == "number":
            kept["format"] = "quantity"
    kind = schema.get("type")
    if kind is not None:
        kept["type"] = kind if isinstance(kind, str) else next(name for name in kind if name != "null")
    for keyword in KEPT:
        if keyword not in schema:
            continue
        value = schema[keyword]
        if keyword == "properties":
            value = {name: convert(entry) for name, entry in sorted(value.items())}
        elif keyword in ("items", "additionalProperties") and isinstance(value, dict):
            value = convert(value)
        elif keyword == "x-kubernetes-group-version-kind":
            value = [entry for entry in value if is_served(entry)]
        kept[keyword] = value
    if is_free_form(kept):
        kept["x-kubernetes-preserve-unknown-fields"] = True
    return kept


def is_free_form(schema: dict[str, Any]) -> bool:
    """Whether anything may be in it: raw extensions, JSON values, field sets."""
    if "$ref" in schema or "x-kubernetes-int-or-string" in schema:
        return False
    return schema.get("type", "object") == "object" and not schema.keys() & {"properties", "additionalProperties"}


def is_served(group_version_kind: dict[str, str]) -> bool:
    """Whether the kind is in the list above."""
    group, version = group_version_kind["group"], group_version_kind["version"]
    kinds = KINDS.get(f"{group}/{version}" if group else version, "")
    return group_version_kind["kind"] in kinds.split()


def references(schema: Any) -> set[str]:
    """Names of the definitions that a converted schema refers to; a property may be called `$ref` too."""
    if isinstance(schema, list):
        return {name for entry in schema for name in references(entry)}
    if not isinstance(schema, dict):
        return set()
    found = {name for entry in schema.values() for name in references(entry)}
    if isinstance(schema.get("$ref"), str):
        found.add(schema["$ref"])
    return found


def closure(names: Iterable[str], source: dict[str, Any]) -> set[str]:
    """The definitions and all that they refer to."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= references(convert(source[name])) - found
    return found


def document() -> dict[str, Any]:
    """What the data file holds."""
    source = json.loads((schema_directory() / "_definitions.json").read_text())["$defs"]
    kinds = {
        "/".join(part for part in (entry["group"], entry["version"], entry["kind"]) if part): name
        for name, schema in source.items()
        for entry in schema.get("x-kubernetes-group-version-kind", ())
        if is_served(entry)
    }
    definitions = {name: convert(source[name]) for name in closure(kinds.values(), source)}
    return {"version": VERSION, "kinds": kinds, "definitions": dict(sorted(definitions.items()))}


def main() -> None:
    """Write the data file."""
    made = document()
    text = json.dumps(made, separators=(",", ":"), sort_keys=True).encode()
    TARGET.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{len(made['kinds'])} kinds, {len(made['definitions'])} definitions, {TARGET.stat().st_size} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
