"""What makes a schema structural, in the words of the real server."""

from __future__ import annotations

from typing import Any

import pytest

from trainer_devcluster.apiserver.schema.structural_check import check_structure

STRING = {"type": "string"}
INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def at(**keywords: Any) -> dict[str, Any]:
    """An object schema with a field `a`."""
    return {"type": "object", "properties": {"a": keywords}}


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(at(**{"x-kubernetes-int-or-string": True, "anyOf": INT_OR_STRING}), id="anyOf"),
        pytest.param(
            at(**{"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": INT_OR_STRING}, {"pattern": "x"}]}),
            id="allOf",
        ),
        pytest.param({"type": "object", "properties": {"metadata": {"type": "object"}}}, id="metadata"),
        pytest.param(
            {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": STRING}}}},
            id="name",
        ),
        pytest.param(
            at(type="object", properties={"b": STRING}, allOf=[{"properties": {"b": {"minLength": 1}}}]),
            id="nested fields",
        ),
    ],
)
def test_structural(schema: dict[str, Any]) -> None:
    """What the documentation shows as structural is so."""
    assert check_structure(schema, "s") == []


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(
            at(type="string", allOf=[{"type": "string", "description": "d", "default": "x", "nullable": True}]),
            [
                "s.properties[a].allOf[0].default: Forbidden: must be undefined to be structural",
                "s.properties[a].allOf[0].description: Forbidden: must be empty to be structural",
                "s.properties[a].allOf[0].nullable: Forbidden: must be false to be structural",
                "s.properties[a].allOf[0].type: Forbidden: must be empty to be structural",
            ],
            id="nested keywords",
        ),
        pytest.param(
            at(type="string", allOf=[{"x-kubernetes-validations": [{"rule": "true"}]}]),
            ["s.properties[a].allOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural"],
            id="nested rules",
        ),
        pytest.param(
            at(type="object", anyOf=[{"properties": {"b": {"minimum": 1}}}, {"items": {"minimum": 1}}]),
            [
                "s.properties[a].items: Required value: because it is defined in s.properties[a].anyOf[1].items",
                (
                    "s.properties[a].properties[b]: Required value: because it is defined in "
                    "s.properties[a].anyOf[0].properties[b]"
                ),
            ],
            id="incomplete",
        ),
        pytest.param(
            {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": STRING}}}},
            [
                (
                    "s.properties[metadata]: Forbidden: must not specify anything other than name and "
                    "generateName, but "
                    "metadata is implicitly specified"
                )
            ],
            id="metadata",
        ),
        pytest.param(
            {"type": "object", "properties": {"kind": {"type": "integer"}}},
            ['s.properties[kind].type: Invalid value: "integer": must be string'],
            id="kind",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": STRING},
            ["s.additionalProperties: Forbidden: must not be used at the root"],
            id="map at the root",
        ),
        pytest.param(
            at(**{"type": "object", "x-kubernetes-embedded-resource": True}),
            [
                (
                    "s.properties[a].properties: Required value: must not be empty if "
                    "x-kubernetes-embedded-resource is true "
                    "without x-kubernetes-preserve-unknown-fields"
                )
            ],
            id="embedded without fields",
        ),
        pytest.param(
            at(**{"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True}),
            [
                (
                    "s.properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if "
                    "x-kubernetes-int-or-string is true"
                )
            ],
            id="int or string or anything",
        ),
        pytest.param(
            at(type="object", **{"not": {"properties": {"metadata": {}}}}, properties={"metadata": {"type": "object"}}),
            ["s.properties[a].not.properties[metadata]: Forbidden: must not be specified in a nested context"],
            id="nested metadata",
        ),
    ],
)
def test_not_structural(schema: dict[str, Any], expected: list[str]) -> None:
    """Every problem is listed, in the order of the texts."""
    assert list(map(str, check_structure(schema, "s"))) == expected
