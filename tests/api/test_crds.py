"""The generated CustomResourceDefinitions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.definitions import DEFINITIONS, root_schema
from trainer.api import patterns, rules
from trainer.v1alpha1.crds import crds_yaml

CONFIG = Path(__file__).parents[2] / "config"


def schema_of(plural: str, *path: str) -> dict[str, Any]:
    """The part of a schema at a path of property names; `[]` steps into list items."""
    schema = root_schema(plural)
    for step in path:
        schema = schema["items"] if step == "[]" else schema["properties"][step]
    return schema


def walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All schemas inside a schema."""
    yield path, schema
    for name, inner in (schema.get("properties") or {}).items():
        yield from walk(inner, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from walk(schema[name], f"{path}.{name}")


def test_config_holds_the_generated_crds() -> None:
    """`config/crd` is up to date; `python -m hack.generate_crds` makes it so."""
    assert (CONFIG / "crd" / "trainer.kubeflow.org.yaml").read_text() == crds_yaml()


@pytest.mark.parametrize("crd", DEFINITIONS, ids=lambda crd: crd["metadata"]["name"])
def test_schemas_are_structural(crd: dict[str, Any]) -> None:
    """Every schema node has a type or is int-or-string, and none uses what structural schemas forbid."""
    forbidden = {"$ref", "$defs", "title", "oneOf", "allOf", "not", "const", "definitions"}
    for path, schema in walk(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
        assert not forbidden & schema.keys(), path
        assert ("type" in schema) != bool(schema.get("x-kubernetes-int-or-string")), path
        assert "anyOf" not in schema or schema.get("x-kubernetes-int-or-string"), path
        assert schema.get("additionalProperties", {}) not in (True, False), path
        if schema.get("type") == "array":
            assert "items" in schema, path
        if schema.get("x-kubernetes-list-type") == "map":
            keys = schema["x-kubernetes-list-map-keys"]
            items = schema["items"]
            defaulted = {key for key in keys if "default" in items["properties"][key]}
            assert set(keys) - defaulted <= set(items.get("required", ())), path


@pytest.mark.parametrize("crd", DEFINITIONS, ids=lambda crd: crd["metadata"]["name"])
def test_every_field_of_a_spec_is_described(crd: dict[str, Any]) -> None:
    """`kubectl explain` has a sentence for each field."""
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for path, inner in walk(schema):
        if path and ".metadata" not in path[:9] and not path.endswith((".items", ".additionalProperties")):
            assert inner.get("description", "").endswith("."), path


def test_kubectl_get_columns() -> None:
    """`kubectl get trainjob` prints NAME STATE PROGRESS % ETA AGE, and with `-o wide` what is less urgent."""
    [version] = DEFINITIONS[0]["spec"]["versions"]
    columns = version["additionalPrinterColumns"]
    assert [column["name"] for column in columns if column.get("priority")] == ["Pending", "Checkpoint"]
    assert [(column["name"], column["jsonPath"]) for column in columns] == [
        ("State", ".status.state"),
        ("Progress %", ".status['trainerStatus','dataInitializerStatus','modelInitializerStatus'].progressPercentage"),
        ("ETA", ".status.trainerStatus.estimatedRemainingTimeSummary"),
        ("Age", ".metadata.creationTimestamp"),
        ("Pending", '.status.conditions[?(@.type=="Pending")].reason'),
        ("Checkpoint", ".status.trainerStatus.checkpoint.time"),
    ]


def test_kubectl_get_columns_of_runtimes() -> None:
    """`kubectl get clustertrainingruntimes` prints NAME FRAMEWORK NODES SUPPORT AGE, where support says deprecated."""
    for crd in DEFINITIONS[1:]:
        [version] = crd["spec"]["versions"]
        assert [
            (column["name"], column["type"], column["jsonPath"]) for column in version["additionalPrinterColumns"]
        ] == [
            ("Framework", "string", r".metadata.labels.trainer\.kubeflow\.org/framework"),
            ("Nodes", "integer", ".spec.mlPolicy.numNodes"),
            ("Support", "string", r".metadata.labels.trainer\.kubeflow\.org/support"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ]


POD = ("spec", "template", "spec", "replicatedJobs", "[]", "template", "spec", "template")
"""Where a runtime's pod templates are."""


@pytest.mark.parametrize(
    ("plural", "path", "expected"),
    [
        pytest.param(
            "trainjobs",
            ("spec", "managedBy"),
            {
                "default": "kubeflow.org/trainjob-controller",
                "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": rules.MANAGED_BY_IMMUTABLE}],
            },
            id="managedBy",
        ),
        pytest.param("trainjobs", ("spec", "suspend"), {"default": False, "type": "boolean"}, id="suspend"),
        pytest.param(
            "trainjobs", ("spec", "runtimeRef", "kind"), {"default": "ClusterTrainingRuntime"}, id="default-kind"
        ),
        pytest.param(
            "trainjobs", ("spec", "runtimeRef", "apiGroup"), {"default": "trainer.kubeflow.org"}, id="default-group"
        ),
        pytest.param(
            "trainjobs",
            ("spec", "trainer", "numProcPerNode"),
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}], "minimum": 1},
            id="int-or-string",
        ),
        pytest.param(
            "trainjobs",
            ("status", "conditions"),
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
            id="conditions-by-type",
        ),
        pytest.param(
            "trainjobs",
            ("status", "jobsStatus"),
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            id="jobsStatus-by-name",
        ),
        pytest.param(
            "trainjobs",
            ("status", "jobsStatus", "[]"),
            {"required": ["name", "ready", "succeeded", "failed", "active", "suspended"]},
            id="jobsStatus-complete",
        ),
        pytest.param(
            "trainjobs", ("status", "trainerStatus", "trainMetrics"), {"x-kubernetes-map-type": "atomic"}, id="metrics"
        ),
        pytest.param("clustertrainingruntimes", POD, {"type": "object", "required": ["spec"]}, id="pod-template"),
        pytest.param(
            "clustertrainingruntimes",
            (*POD, "spec", "initContainers", "[]", "env"),
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            id="env-by-name",
        ),
        pytest.param(
            "clustertrainingruntimes",
            (*POD, "spec", "containers", "[]", "ports"),
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["containerPort", "protocol"]},
            id="ports-by-number-and-protocol",
        ),
        pytest.param(
            "clustertrainingruntimes",
            (*POD, "spec", "containers", "[]", "ports", "[]", "protocol"),
            {"type": "string", "default": "TCP", "enum": ["SCTP", "TCP", "UDP"]},
            id="protocol",
        ),
        pytest.param(
            "clustertrainingruntimes",
            (*POD, "spec", "containers", "[]", "volumeMounts"),
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["mountPath"]},
            id="mounts-by-path",
        ),
        pytest.param(
            "clustertrainingruntimes", (*POD, "spec", "tolerations"), {"x-kubernetes-list-type": "atomic"}, id="atomic"
        ),
        pytest.param(
            "trainingruntimes",
            ("spec", "mlPolicy", "torch", "elasticPolicy", "metrics", "[]"),
            {"required": ["type"]},
            id="metrics",
        ),
        pytest.param(
            "trainjobs",
            ("spec", "podSpecOverrides", "[]", "volumes", "[]"),
            {"required": ["name"], "type": "object"},
            id="volumes-have-names",
        ),
    ],
)
def test_schema(plural: str, path: tuple[str, ...], expected: dict[str, Any]) -> None:
    """Details that users and the API server rely on."""
    assert expected.items() <= schema_of(plural, *path).items()


def test_no_schema_has_an_empty_properties_field() -> None:
    """API servers leave it out, so a definition with it would differ from the stored one whenever it is applied."""
    for crd in DEFINITIONS:
        for path, schema in walk(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
            assert schema.get("properties") != {}, path


@pytest.mark.parametrize("crd", DEFINITIONS, ids=lambda crd: crd["metadata"]["name"])
def test_definitions_fit_into_an_annotation(crd: dict[str, Any]) -> None:
    """Client-side `kubectl apply` keeps the whole definition in an annotation, and annotations end at 256 KiB."""
    assert len(json.dumps(crd, separators=(",", ":"), ensure_ascii=False).encode()) + 1 < 200 * 1024


@pytest.mark.parametrize("crd", DEFINITIONS, ids=lambda crd: crd["metadata"]["name"])
def test_nothing_is_left_unchecked(crd: dict[str, Any]) -> None:
    """No part of a schema accepts unknown fields, so that every typing mistake is found."""
    for path, schema in walk(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
        assert "x-kubernetes-preserve-unknown-fields" not in schema, path


@pytest.mark.parametrize("crd", DEFINITIONS, ids=lambda crd: crd["metadata"]["name"])
def test_every_pattern_has_words(crd: dict[str, Any]) -> None:
    """Nobody has to read a regular expression to understand a refusal."""
    for path, schema in walk(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
        assert schema.get("pattern", patterns.DNS_LABEL) in patterns.WORDS, path


@pytest.mark.parametrize("crd", DEFINITIONS, ids=lambda crd: crd["metadata"]["name"])
def test_lists_that_rules_walk_are_bounded(crd: dict[str, Any]) -> None:
    """An API server estimates what rules cost before it accepts a definition, and an unbounded list is too much."""
    root = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for path, schema in walk(root):
        for rule in schema.get("x-kubernetes-validations", ()):
            for steps in re.findall(r"(?:self|oldSelf)((?:\.\w+)+)\.(?:all|exists)\(", rule["rule"]):
                walked = schema
                for step in steps.strip(".").split("."):
                    walked = walked["properties"][step]
                assert walked["maxItems"] <= 100, (path, rule["rule"])


def test_scopes_and_subresources() -> None:
    """Only ClusterTrainingRuntimes are cluster-wide; only TrainJobs have a status of their own, and can be scaled."""
    facts = {
        crd["metadata"]["name"]: (crd["spec"]["scope"], crd["spec"]["versions"][0].get("subresources"))
        for crd in DEFINITIONS
    }
    scale = {
        "specReplicasPath": ".spec.trainer.numNodes",
        "statusReplicasPath": ".status.scale.nodes",
        "labelSelectorPath": ".status.scale.selector",
    }
    assert facts == {
        "trainjobs.trainer.kubeflow.org": ("Namespaced", {"status": {}, "scale": scale}),
        "trainingruntimes.trainer.kubeflow.org": ("Namespaced", None),
        "clustertrainingruntimes.trainer.kubeflow.org": ("Cluster", None),
    }
