"""Values and names inside CEL expressions."""

from __future__ import annotations

from typing import Any

import pytest

from trainer_devcluster.apiserver.schema.validation_rules import escape, value_of

SCHEMA = {
    "type": "object",
    "properties": {
        "a-b": {"type": "string"},
        "nested": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("plain", "plain"),
        ("a-b", "a__dash__b"),
        ("a.b", "a__dot__b"),
        ("a/b", "a__slash__b"),
        ("a__b", "a__underscores__b"),
        ("namespace", "__namespace__"),
        ("in", "__in__"),
    ],
)
def test_property_names_are_escaped(name: str, escaped: str) -> None:
    """Names that CEL cannot spell are written as the Kubernetes documentation says."""
    assert escape(name) == escaped


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        pytest.param(3, {"type": "number"}, 3.0, id="number is a double"),
        pytest.param(3.0, {"type": "integer"}, 3, id="integer is an int"),
        pytest.param("1h30m", {"type": "string", "format": "duration"}, "1h30m", id="text of a format"),
        pytest.param("http", {"x-kubernetes-int-or-string": True}, "http", id="int or string"),
        pytest.param({"a-b": "x", "gone": 1}, SCHEMA, {"a__dash__b": "x"}, id="only declared properties"),
        pytest.param({"map": {"a-b": "x"}}, SCHEMA, {"map": {"a-b": "x"}}, id="map keys as they are"),
    ],
)
def test_values_are_typed_by_their_schema(value: Any, schema: dict[str, Any], expected: Any) -> None:
    """What JSON cannot say, the schema does."""
    typed = value_of(value, schema)
    assert typed == expected
    assert type(typed) is type(expected)


def test_sets_come_in_the_order_of_the_other_side() -> None:
    """Sets and map lists that differ only in order are equal."""
    by_name = {
        "type": "array",
        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    new = [{"name": "a"}, {"name": "b"}]
    assert value_of(new[::-1], by_name, order_like=new) == new
    strings = {"type": "array", "items": {"type": "string"}}
    assert value_of(["b", "a"], {**strings, "x-kubernetes-list-type": "set"}, order_like=["a", "b"]) == ["a", "b"]
    assert value_of(["b", "a"], strings, order_like=["a", "b"]) == ["b", "a"]
