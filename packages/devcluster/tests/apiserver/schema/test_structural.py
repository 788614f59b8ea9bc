"""Pruning, defaulting and validation of custom resources; expected texts are answers of a real API server."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packages.devcluster.tests.apiserver.widgets import SCHEMA, WIDGET_SCHEMA, widget
from trainer_devcluster.apiserver.schema.structural import SchemaError, StructuralSchema

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 20) | st.text(alphabet="abc", max_size=3),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.sampled_from(["size", "parts", "tags", "name", "ref", "free", "x", "labels"]), children)
    ),
    max_leaves=12,
)


def prepared(obj: dict[str, Any]) -> dict[str, Any]:
    WIDGET_SCHEMA.prune(obj)
    WIDGET_SCHEMA.default(obj)
    return obj


def errors(obj: dict[str, Any], old: dict[str, Any] | None = None, subresource: str | None = None) -> list[str]:
    return [str(cause) for cause in WIDGET_SCHEMA.validate(obj, old, subresource=subresource)]


@pytest.mark.parametrize(
    ("given_port", "stored"),
    [
        pytest.param(80.0, "80", id="whole"),
        pytest.param(0.5, "0.5", id="not whole"),
        pytest.param(1e21, "1e+21", id="too large to be exact"),
    ],
)
def test_numbers(given_port: float, stored: str) -> None:
    """Whole numbers are stored without a point, as Go writes them."""
    assert json.dumps(prepared(widget({"port": given_port}))["spec"]["port"]) == stored


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"mode": None}, {"mode": "slow", "replicas": 1}, id="null becomes the default"),
        pytest.param({"pattern": None, "mode": "fast"}, {"mode": "fast", "replicas": 1}, id="null goes"),
        pytest.param(
            {"labels": {"a": None, "b": "c"}},
            {"labels": {"b": "c"}, "mode": "slow", "replicas": 1},
            id="null in a map goes",
        ),
    ],
)
def test_nulls(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    """Null means absent where a field cannot be null."""
    assert prepared(widget(spec))["spec"] == expected


@given(json_values)
def test_pruning_and_defaulting_are_idempotent(spec: Any) -> None:
    """Doing it twice is doing it once, on any JSON."""
    obj = widget(spec={} if spec is None else spec)
    WIDGET_SCHEMA.prune(obj)
    WIDGET_SCHEMA.default(obj)
    again = copy.deepcopy(obj)
    assert WIDGET_SCHEMA.prune(again) == []
    WIDGET_SCHEMA.default(again)
    assert again == obj


@given(json_values, json_values)
def test_validation_never_raises(spec: Any, old_spec: Any) -> None:
    """Any JSON is answered with causes, and an object is always a valid update of itself when it was valid."""
    obj, old = widget(spec=spec), widget(spec=old_spec)
    WIDGET_SCHEMA.validate(obj, old)
    assert errors(old, copy.deepcopy(old)) == errors(copy.deepcopy(old), old)


def test_the_schema_is_copied() -> None:
    """Changing the definition afterwards does not change what is served."""
    document = copy.deepcopy(SCHEMA)
    schema = StructuralSchema.from_crd(document)
    document["properties"].clear()
    assert schema.prune(widget({"size": 3})) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            {"type": "integer", "default": "x"},
            'default: Invalid value: "string":  in body must be of type integer: "string"',
            id="default of a wrong type",
        ),
        pytest.param(
            {"type": "object", "required": ["b"], "properties": {"b": {"type": "string"}}, "default": {}},
            "default.b: Required value",
            id="default without what is required",
        ),
        pytest.param(
            {"type": "string", "pattern": "("}, 'pattern: Invalid value: "(": must be a valid', id="bad pattern"
        ),
        pytest.param(
            {"type": "string", "x-kubernetes-validations": [{"rule": "self >"}]},
            'x-kubernetes-validations[0].rule: Invalid value: "self >": compilation failed: ERROR: <input>:1:7: ',
            id="bad rule",
        ),
        pytest.param({}, "type: Required value: must not be empty for specified object fields", id="no type"),
    ],
)
def test_schemas_that_cannot_be_served(change: dict[str, Any], expected: str) -> None:
    """A bad schema is refused with the path of the mistake in the definition."""
    path = "spec.versions[0].schema.openAPIV3Schema"
    with pytest.raises(SchemaError) as caught:
        StructuralSchema.from_crd({"type": "object", "properties": {"a": change}}, path)
    assert str(caught.value.causes[0]).startswith(f"{path}.properties[a].{expected}")
