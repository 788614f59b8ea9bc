"""Which schemas are structural."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.kube.field_errors import FieldError
from trainer_devcluster.apiserver.schema.structural import SchemaError, StructuralSchema

STRING = {"type": "string"}


def check_schema(schema: dict[str, Any], path: str) -> list[FieldError]:
    """What is wrong with a schema, whichever of the checks finds it."""
    try:
        StructuralSchema.from_crd(schema, path)
    except SchemaError as error:
        return error.causes
    return []


def with_property(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(
            with_property({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            id="int or string with its pattern",
        ),
        pytest.param(with_property({"type": "object", "oneOf": [{"required": ["x"]}]}), id="value validation"),
    ],
)
def test_structural_schemas(schema: dict[str, Any]) -> None:
    """A structural schema has nothing wrong."""
    assert check_schema(schema, "s") == []


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(
            {"type": "object", "nullable": True},
            "s.nullable: Forbidden: nullable cannot be true at the root",
            id="nullable root",
        ),
        pytest.param(
            with_property({"type": "array"}), "s.properties[a].items: Required value: must be specified", id="no items"
        ),
        pytest.param(
            with_property({"type": "array", "items": {"type": "object", "properties": {"b": None}}}),
            "s.properties[a].items.properties[b].type: Required value: must not be empty for specified object fields",
            id="null in place of a schema",
        ),
        pytest.param(
            with_property({"type": "text"}),
            's.properties[a].type: Unsupported value: "text": supported values: "array", "boolean", "integer", '
            '"number", "object", "string"',
            id="unknown type",
        ),
        pytest.param(
            with_property({**STRING, "pattern": "[", "default": "x"}),
            's.properties[a].pattern: Invalid value: "[": must be a valid regular expression, but isn\'t: missing ]: [',
            id="malformed pattern, which checks no default",
        ),
        pytest.param(
            with_property({**STRING, "format": "uuid"}),
            "s.properties[a].format: Forbidden: the dev cluster does not check texts of format uuid: use a pattern, or "
            "a real cluster",
            id="format that is not checked",
        ),
        pytest.param(
            with_property({"type": "array", "items": STRING, "x-kubernetes-list-type": "Set"}),
            's.properties[a].x-kubernetes-list-type: Unsupported value: "Set": supported values: "atomic", "map", '
            '"set"',
            id="unknown type of list",
        ),
        pytest.param(
            with_property({**STRING, "$ref": "x"}),
            "s.properties[a].$ref: Forbidden: $ref is not supported",
            id="reference",
        ),
        pytest.param(
            with_property({"type": "array", "items": STRING, "uniqueItems": True}),
            "s.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity "
            "becomes quadratic",
            id="unique items",
        ),
        pytest.param(
            with_property({"type": "object", "properties": {"b": STRING}, "additionalProperties": STRING}),
            "s.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            id="properties and additional properties",
        ),
        pytest.param(
            with_property({"type": "object", "additionalProperties": False}),
            "s.properties[a].additionalProperties: Forbidden: additionalProperties cannot be set to false",
            id="closed map",
        ),
        pytest.param(
            with_property({"type": "array", "items": STRING, "x-kubernetes-list-type": "map"}),
            "s.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if "
            "x-kubernetes-list-type is map",
            id="map list without keys",
        ),
        pytest.param(
            with_property(
                {
                    "type": "array",
                    "items": {"type": "object", "properties": {"n": STRING}},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["n"],
                }
            ),
            "s.properties[a].items.properties[n].default: Required value: this property is in "
            "x-kubernetes-list-map-keys, so it must have a default or be a required property",
            id="optional key",
        ),
        pytest.param(
            with_property({**STRING, "x-kubernetes-list-type": "set"}),
            's.properties[a].type: Invalid value: "string": must be array if x-kubernetes-list-type is specified',
            id="list type of a string",
        ),
        pytest.param(
            with_property({**STRING, "anyOf": [{"type": "string"}]}),
            "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
            id="type inside anyOf",
        ),
        pytest.param(
            with_property({"type": "object", "x-kubernetes-embedded-resource": True}),
            "s.properties[a].x-kubernetes-embedded-resource: Forbidden: the dev cluster does not check embedded "
            "objects: use a real cluster",
            id="embedded object",
        ),
        pytest.param(
            with_property({"type": "object", "anyOf": [{"properties": {"b": {"minimum": 1}}}]}),
            "s.properties[a].properties[b]: Required value: because it is defined in "
            "s.properties[a].anyOf[0].properties[b]",
            id="undeclared field inside anyOf",
        ),
        pytest.param(
            with_property({"type": "integer", "x-kubernetes-int-or-string": True}),
            's.properties[a].type: Invalid value: "integer": must be empty if x-kubernetes-int-or-string is true',
            id="typed int or string",
        ),
    ],
)
def test_schemas_that_are_not_structural(schema: dict[str, Any], expected: str) -> None:
    """The first complaint names the place in the definition and the remedy."""
    assert str(check_schema(schema, "s")[0]) == expected


@pytest.mark.parametrize("wrong", [{"a": "text"}, {"a": {**STRING, "maxLength": "8"}}, {"a": {"type": 1}}, ["a"]])
@pytest.mark.parametrize("keyword", ["items", "additionalProperties"])
def test_values_that_are_no_schemas(keyword: str, wrong: Any) -> None:
    """Below a list or a map they are refused as they are elsewhere, when the definition is decoded."""
    schema = with_property({"type": "array" if keyword == "items" else "object", keyword: {"properties": wrong}})
    [cause] = check_schema(schema, "s")
    assert cause.field == f"s.properties[a].{keyword}"
    assert "cannot unmarshal" in str(cause)
