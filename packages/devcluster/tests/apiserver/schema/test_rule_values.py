"""Values and names inside CEL expressions."""

from __future__ import annotations

from typing import Any

import pytest

from trainer_devcluster.apiserver.schema.validation_rules import value_of

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
    ("value", "schema", "expected"),
    [
        pytest.param(3, {"type": "number"}, 3.0, id="number is a double"),
        pytest.param(3.0, {"type": "integer"}, 3, id="integer is an int"),
    ],
)
def test_values_are_typed_by_their_schema(value: Any, schema: dict[str, Any], expected: Any) -> None:
    """What JSON cannot say, the schema does."""
    typed = value_of(value, schema)
    assert typed == expected
    assert type(typed) is type(expected)
