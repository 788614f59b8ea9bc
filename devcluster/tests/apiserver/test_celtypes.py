"""Values and names inside CEL expressions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainer_devcluster.apiserver.celtypes import SchemaTypes, escape, value_of

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
        pytest.param("YWI=", {"type": "string", "format": "byte"}, b"ab", id="bytes"),
        pytest.param(
            "2026-01-01T00:00:00Z",
            {"type": "string", "format": "date-time"},
            datetime(2026, 1, 1, tzinfo=UTC),
            id="timestamp",
        ),
        pytest.param("2026-01-01", {"type": "string", "format": "date"}, datetime(2026, 1, 1, tzinfo=UTC), id="date"),
        pytest.param("1h30m", {"type": "string", "format": "duration"}, timedelta(minutes=90), id="duration"),
        pytest.param("soon", {"type": "string", "format": "duration"}, "soon", id="malformed duration"),
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


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({"type": "integer"}, "int", id="integer"),
        pytest.param({"type": "string", "format": "date-time"}, "timestamp", id="timestamp"),
        pytest.param({"type": "string", "format": "byte"}, "bytes", id="bytes"),
        pytest.param({"type": "string", "format": "uuid"}, "string", id="other formats"),
        pytest.param({"type": "array", "items": {"type": "number"}}, "list(double)", id="list"),
        pytest.param({"type": "object", "additionalProperties": {"type": "boolean"}}, "map(string, bool)", id="map"),
        pytest.param({"x-kubernetes-int-or-string": True}, "dyn", id="int or string"),
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, "None", id="anything"),
        pytest.param({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}, "None", id="of those"),
    ],
)
def test_schemas_have_types(schema: dict[str, Any], expected: str) -> None:
    """What nothing is known about cannot be reached at all, except for int-or-string."""
    assert str(SchemaTypes().of(schema)) == expected


def test_objects_have_the_fields_that_can_be_spelled() -> None:
    """Escaped names are those of expressions; embedded objects have the names of every object."""
    found = SchemaTypes().of({"type": "object", "properties": {"a-b": {"type": "string"}, "1": {"type": "string"}}})
    assert found is not None
    assert list(found.fields or ()) == ["a__dash__b"]
    embedded = SchemaTypes().of({"type": "object", "x-kubernetes-embedded-resource": True})
    assert embedded is not None
    assert list(embedded.fields or ()) == ["apiVersion", "kind", "metadata"]
