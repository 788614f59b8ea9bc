"""Keywords of structural schemas."""

from __future__ import annotations

from typing import Any

import pytest

from trainer_devcluster.apiserver.schema.validation import (
    fits_format,
    matches_format,
    validate_value,
)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2026-01-01T00:00:00Z", "2026-01-01"),
        ("date-time", "2026-01-01T00:00:00.123456789+01:00", "2026-13-01T00:00:00Z"),
        ("date", "2026-02-28", "2026-02-30"),
        ("byte", "YWI=", "not base64!"),
    ],
)
def test_known_formats(name: str, good: str, bad: str) -> None:
    """Formats that the server knows are checked."""
    assert matches_format(good, name)
    assert not matches_format(bad, name)


def test_unknown_formats_accept_everything() -> None:
    """A format that the server does not know is only a comment."""
    assert matches_format("anything", "my-format")
    assert fits_format(2**40, "my-format")


@pytest.mark.parametrize(
    ("value", "name", "fits"), [(2**31 - 1, "int32", True), (2**31, "int32", False), (-(2**63), "int64", True)]
)
def test_integer_formats_bound_numbers(value: int, name: str, fits: bool) -> None:
    """int32 and int64 are ranges."""
    assert fits_format(value, name) is fits


STRING = {"type": "string"}


def in_property(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        pytest.param({"type": "integer"}, 3.0, [], id="whole float is an integer"),
        pytest.param(
            {"type": "integer"},
            True,
            ['a: Invalid value: "boolean": a in body must be of type integer: "boolean"'],
            id="bool",
        ),
        pytest.param(STRING, None, ['a: Invalid value: "null": a in body must be of type string: "null"'], id="null"),
        pytest.param({"type": "string", "nullable": True}, None, [], id="nullable"),
        pytest.param(
            {"x-kubernetes-int-or-string": True},
            [],
            ['a: Invalid value: "array": a in body must be of type integer,string: "array"'],
            id="int or string",
        ),
        pytest.param(
            {"type": "string", "maxLength": 2}, "éée", ["a: Too long: may not be more than 2 bytes"], id="too long"
        ),
        pytest.param(
            {"type": "string", "format": "date-time"},
            "x",
            ['a: Invalid value: "x": a in body must be of type date-time: "x"'],
            id="format",
        ),
        pytest.param(
            {"type": "integer", "multipleOf": 3},
            4,
            ["a: Invalid value: 4: a in body should be a multiple of 3"],
            id="multiple",
        ),
        pytest.param(
            {"type": "integer", "enum": [1, 2]}, 3, ['a: Unsupported value: 3: supported values: "1", "2"'], id="enum"
        ),
        pytest.param(
            {"type": "array", "minItems": 2, "items": STRING},
            ["x"],
            ["a: Invalid value: 1: a in body should have at least 2 items"],
            id="too few items",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "object", "required": ["n"], "properties": {"n": STRING}}},
            [{"n": "x"}, {}],
            ["a[1].n: Required value"],
            id="required in an item",
        ),
        pytest.param(
            {"type": "object", "maxProperties": 1, "additionalProperties": STRING},
            {"x": "y", "z": "y"},
            ["a: Too many: 2: must have at most 1 items"],
            id="too many properties",
        ),
        pytest.param(
            {"type": "integer", "oneOf": [{"minimum": 3}, {"maximum": 5}]},
            4,
            ['<nil>: Invalid value: "": "a" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
            id="two alternatives",
        ),
        pytest.param(
            {
                "type": "object",
                "properties": {"x": STRING, "y": STRING},
                "anyOf": [{"required": ["x"]}, {"required": ["y"]}],
            },
            {},
            [
                '<nil>: Invalid value: "": "a" must validate at least one schema (anyOf)',
                "a.x: Required value",
            ],
            id="no alternative",
        ),
        pytest.param(
            {"type": "integer", "allOf": [{"minimum": 3}, {"maximum": 1}]},
            2,
            [
                "a: Invalid value: 2: a in body should be greater than or equal to 3",
                "a: Invalid value: 2: a in body should be less than or equal to 1",
                '<nil>: Invalid value: "": "a" must validate all the schemas (allOf). None validated',
            ],
            id="all of",
        ),
        pytest.param(
            {"type": "integer", "not": {"enum": [4]}},
            4,
            ['<nil>: Invalid value: "": "a" must not validate the schema (not)'],
            id="not",
        ),
    ],
)
def test_keywords(schema: dict[str, Any], value: object, errors: list[str]) -> None:
    """Each keyword complains in the words of the API server."""
    assert [str(cause) for cause in validate_value({"a": value}, in_property(schema))] == errors


def test_unchanged_parts_are_not_checked_again() -> None:
    """A stored value that a stricter schema forbids may stay as long as nobody touches it."""
    schema = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 1}, "b": {"type": "integer"}}}
    old = {"a": 5, "b": 1}
    assert validate_value({"a": 5, "b": 2}, schema, old=old) == []
    assert [cause.field for cause in validate_value({"a": 6, "b": 1}, schema, old=old)] == ["a"]


def test_items_of_map_lists_are_compared_by_key() -> None:
    """Moving an invalid item of a map list does not make it a new error; in an atomic list it does."""
    items = {"type": "object", "properties": {"n": STRING, "v": {"type": "integer", "maximum": 1}}}
    by_key = {
        "type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
    }  # fmt: skip
    old, new = {"a": [{"n": "x", "v": 5}]}, {"a": [{"n": "y"}, {"n": "x", "v": 5}]}
    assert validate_value(new, in_property(by_key), old=old) == []
    atomic = {"type": "array", "items": items}
    assert [cause.field for cause in validate_value(new, in_property(atomic), old=old)] == ["a[1].v"]
