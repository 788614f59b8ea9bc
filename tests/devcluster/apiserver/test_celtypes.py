"""Values and names inside CEL expressions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import cel
import pytest

from trainer.devcluster.apiserver.celtypes import escape, functions_of, undeclared, unknown_field, value_of

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
    ("expression", "problem"),
    [
        pytest.param("self.all(x, x > 1) && oldSelf.size() == 1", "", id="macro variable"),
        pytest.param("sets.contains(self, [1]) && math.greatest(self) > 1 && self.isSorted()", "", id="libraries"),
        pytest.param("other > 1", "undeclared reference to 'other' (in container '')", id="variable"),
        pytest.param("self.frobnicate()", "undeclared reference to 'frobnicate' (in container '')", id="function"),
        pytest.param("self == 'other.frobnicate()'", "", id="text is no code"),
    ],
)
def test_undeclared_names(expression: str, problem: str) -> None:
    """Variables and functions that do not exist are found before the rule is used."""
    assert undeclared(cel.compile(expression), expression, ("self", "oldSelf")) == problem


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("self.nested.x > 1 && self.a__dash__b == 'self.nope'", "", id="known"),
        pytest.param("self.map.anything == 'x' && self.free.anything == 1", "", id="open maps"),
        pytest.param("self.nested.x.size() > 1", "", id="method of a scalar"),
        pytest.param("has(oldSelf.nested.y)", "undefined field 'y'", id="unknown nested field"),
        pytest.param("self.nope == 1", "undefined field 'nope'", id="unknown field"),
    ],
)
def test_unknown_fields(expression: str, problem: str) -> None:
    """A rule about a field that the schema does not have is a mistake in the definition."""
    assert unknown_field(expression, SCHEMA) == problem


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("[1, 2, 2].isSorted()", True),
        ("'a1b22'.find('[0-9]+')", "1"),
        ("'a1b22'.findAll('[0-9]+')", ["1", "22"]),
        ("'%s has %d (%.1f%%)'.format(['a', 2, 1.25])", "a has 2 (1.2%)"),
        ("'a,b'.split(',').join('-')", "a-b"),
    ],
)
def test_library_functions(expression: str, result: object) -> None:
    """Functions beyond the core language work, and only those that are called are provided."""
    program = cel.compile(expression)
    assert program.execute(cel.Context(functions=functions_of([program]))) == result
