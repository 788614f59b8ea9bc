"""Pruning, defaulting and validation of custom resources; expected texts are answers of a real API server."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packages.devcluster.tests.apiserver.widgets import WIDGET_SCHEMA, widget

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
    ],
)
def test_numbers(given_port: float, stored: str) -> None:
    """Whole numbers are stored without a point, as Go writes them."""
    assert json.dumps(prepared(widget({"port": given_port}))["spec"]["port"]) == stored


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
