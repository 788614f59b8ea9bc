"""OpenAPI v3 documents."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest

from packages.devcluster.tests.apiserver.discovery.test_discovery import NAMESPACE, POD, REVIEW
from packages.devcluster.tests.apiserver.widgets import WIDGET
from trainer_devcluster.apiserver.discovery import openapi

DEFINITIONS = [NAMESPACE, POD, WIDGET, REVIEW]


def document(group: str, version: str = "v1") -> dict[str, Any]:
    found = openapi.document(DEFINITIONS, group, version)
    assert found is not None
    return found


def test_the_hash_follows_the_content() -> None:
    """Clients keep documents by their hash."""
    with_pod, without_pod = openapi.Writer().index([NAMESPACE, POD]), openapi.Writer().index([NAMESPACE])
    assert with_pod["paths"] != without_pod["paths"]
    assert with_pod == openapi.Writer().index([NAMESPACE, POD])


def test_what_is_not_served_has_no_document() -> None:
    """Unknown groups are not found."""
    assert openapi.document(DEFINITIONS, "nope", "v1") is None


def test_patch_says_that_the_server_validates_fields() -> None:
    """kubectl looks for `fieldValidation` on the PATCH operation of the kind before it sends anything."""
    for group, path, kind in (
        ("", "/api/v1/namespaces/{namespace}/pods/{name}", "Pod"),
        ("conformance.example.com", "/apis/conformance.example.com/v1/namespaces/{namespace}/widgets/{name}", "Widget"),
    ):
        operation = document(group)["paths"][path]["patch"]
        assert {"fieldValidation", "dryRun", "fieldManager"} <= {entry["name"] for entry in operation["parameters"]}
        assert operation["x-kubernetes-group-version-kind"] == {"group": group, "version": "v1", "kind": kind}


def test_paths_follow_the_scope_and_the_verbs() -> None:
    """Cluster-scoped kinds have no namespace in their paths, and only served verbs have operations."""
    core, reviews = document(""), document("authorization.k8s.io")
    assert "/api/v1/namespaces/{name}" in core["paths"]
    assert list(core["paths"]["/api/v1/pods"]) == ["get"]
    assert {path: list(operations) for path, operations in reviews["paths"].items()} == {
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": ["post"]
    }


def test_built_in_schemas_keep_what_patches_need() -> None:
    """Merge keys and list types are in the published schemas."""
    spec = document("")["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]
    containers = spec["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


@pytest.mark.parametrize("group", ["", "conformance.example.com", "authorization.k8s.io"])
def test_references_lead_somewhere(group: str) -> None:
    """Every reference is to a schema of the same document, and nothing stands next to one."""
    content = document(group)
    schemas = content["components"]["schemas"]
    found = 0

    def walk(value: Any) -> None:
        nonlocal found
        if isinstance(value, list):
            for entry in value:
                walk(entry)
        elif isinstance(value, dict):
            reference = value.get("$ref")
            if isinstance(reference, str):
                found += 1
                assert list(value) == ["$ref"]
                assert reference.removeprefix("#/components/schemas/") in schemas
            for entry in value.values():
                walk(entry)

    walk(json.loads(json.dumps(content)))
    assert found


def test_documents_are_written_once() -> None:
    """A document is the same bytes until another definition of its group is served."""
    writer = openapi.Writer()
    first = writer.document(DEFINITIONS, "", "v1")
    assert first is not None
    assert json.loads(bytes(first)) == document("")
    others = [definition for definition in DEFINITIONS if definition is not WIDGET]
    with mock.patch.object(openapi, "document", side_effect=AssertionError):
        assert writer.document(others, "", "v1") == first
    assert writer.document([NAMESPACE], "", "v1") != first
    assert writer.document(DEFINITIONS, "nope", "v1") is None
