"""The OpenAPI v2 document: JSON and protobuf."""

from __future__ import annotations

import pytest

from devcluster.tests.apiserver.widgets import WIDGET
from trainer_devcluster.apiserver.discovery.openapi_v2 import document, encode, wants_protobuf
from trainer_devcluster.apiserver.kinds import BUILTIN_KINDS


def test_definitions() -> None:
    """Kinds are marked, references lead somewhere, and what cannot be said is left open."""
    made = document([*BUILTIN_KINDS, WIDGET])
    definitions = made["definitions"]
    widget = definitions["com.example.conformance.v1.Widget"]
    assert widget["x-kubernetes-group-version-kind"] == [
        {"group": "conformance.example.com", "kind": "Widget", "version": "v1"}
    ]
    spec = widget["properties"]["spec"]["properties"]
    assert (spec["size"]["type"], spec["port"], spec["free"]) == ("integer", {}, {})
    reference = widget["properties"]["metadata"]["$ref"].removeprefix("#/definitions/")
    assert "labels" in definitions[reference]["properties"]


def test_protobuf() -> None:
    """The messages are those of gnostic's Document: version, info, paths, definitions."""
    made = {
        "swagger": "2.0",
        "info": {"title": "T", "version": "v"},
        "definitions": {"a": {"type": "object", "required": ["b"], "properties": {"b": {"$ref": "#/definitions/c"}}}},
    }
    reference = b"\x0a\x0f#/definitions/c"
    prop = b"\x0a\x01b\x12\x11" + reference
    schema = b"\x9a\x01\x01b" + b"\xb2\x01\x08\x0a\x06object" + b"\xca\x01\x18\x0a\x16" + prop
    named = b"\x0a\x01a\x12" + bytes([len(schema)]) + schema
    expected = b"\x0a\x032.0\x12\x06\x0a\x01T\x12\x01v\x42\x00"
    assert encode(made) == expected + b"\x4a" + bytes([len(named) + 2]) + b"\x0a" + bytes([len(named)]) + named


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", True),
        ("application/com.github.proto-openapi.spec.v2.v1.0+protobuf", True),
        ("application/json", False),
        ("*/*", False),
    ],
)
def test_negotiation(accept: str, expected: bool) -> None:
    """Go clients ask for protobuf, all others get JSON."""
    assert wants_protobuf(accept) is expected
