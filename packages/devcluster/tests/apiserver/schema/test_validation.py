"""Keywords of structural schemas."""

from __future__ import annotations

from typing import Any

import pytest

from trainer_devcluster.apiserver.schema.validation import (
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


STRING = {"type": "string"}


def in_property(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        pytest.param({"type": "integer"}, 3.0, [], id="whole float is an integer"),
        pytest.param(STRING, None, ['a: Invalid value: "null": a in body must be of type string: "null"'], id="null"),
        pytest.param({"type": "string", "nullable": True}, None, [], id="nullable"),
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
            {"type": "array", "minItems": 2, "items": STRING},
            ["x"],
            ["a: Invalid value: 1: a in body should have at least 2 items"],
            id="too few items",
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
