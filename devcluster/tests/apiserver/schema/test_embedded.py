"""Objects inside custom resources."""

from __future__ import annotations

from typing import Any

import pytest

from trainer_devcluster.apiserver.schema.structural import StructuralSchema

EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
SCHEMA = StructuralSchema.from_crd(
    {
        "type": "object",
        "properties": {
            "template": EMBEDDED,
            "list": {"type": "array", "items": EMBEDDED},
            "map": {"type": "object", "additionalProperties": EMBEDDED},
        },
    }
)
POD = {"apiVersion": "v1", "kind": "Pod"}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param({"template": {**POD, "metadata": {"name": "a", "labels": {"l": "1"}}, "x": 1}}, [], id="right"),
        pytest.param(
            {"template": {}},
            [
                "template.apiVersion: Required value: must not be empty",
                "template.kind: Required value: must not be empty",
            ],
            id="untyped",
        ),
        pytest.param(
            {"list": [POD, {**POD, "apiVersion": "a/b/c"}]},
            ['list[1].apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
            id="version in a list",
        ),
        pytest.param(
            {"map": {"k": {**POD, "apiVersion": ""}}},
            ['map[k].apiVersion: Invalid value: "": must not be empty'],
            id="empty version in a map",
        ),
        pytest.param(
            {"template": {**POD, "metadata": {"name": "a/b"}}},
            ["template.metadata.name: Invalid value: \"a/b\": may not contain '/'"],
            id="name",
        ),
    ],
)
def test_embedded_objects_are_validated(obj: dict[str, Any], expected: list[str]) -> None:
    """They have a type, and metadata as every object has."""
    assert [str(cause) for cause in SCHEMA.validate(obj)][: len(expected) or 1] == expected
