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

NOT_CHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the "
    "existing errors to complete validation"
)

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


def test_pruning_and_defaulting() -> None:
    """Unknown fields go, free-form content stays, defaults are filled in below what is there."""
    obj = widget(
        {
            "size": 3, "ref": {"nam": "x"}, "port": "http", "free": {"a": [1, {"b": None}]}, "unknown": 1,
            "parts": [{"name": "p"}],
        },
    )  # fmt: skip
    assert WIDGET_SCHEMA.prune(obj) == ["spec.ref.nam", "spec.unknown"]
    WIDGET_SCHEMA.default(obj)
    assert obj["spec"] == {
        "size": 3, "mode": "slow", "replicas": 1, "ref": {"kind": "Thing"}, "port": "http",
        "free": {"a": [1, {"b": None}]}, "parts": [{"name": "p", "unit": "kg"}],
    }  # fmt: skip


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


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"size": 3}, [], id="valid"),
        pytest.param(
            {"size": 11},
            ["spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"],
            id="maximum",
        ),
        pytest.param(
            {"size": "three"},
            ['spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"', NOT_CHECKED],
            id="type",
        ),
        pytest.param(
            {"size": 3, "mode": "medium"},
            ['spec.mode: Unsupported value: "medium": supported values: "fast", "slow"', NOT_CHECKED],
            id="enum",
        ),
        pytest.param({"mode": "fast"}, ["spec.size: Required value", NOT_CHECKED], id="required"),
        pytest.param(None, ["spec: Required value", NOT_CHECKED], id="required at the root"),
        pytest.param(
            {"size": 3, "pattern": "ABC", "ref": {"name": ""}},
            [
                "spec.pattern: Invalid value: \"ABC\": spec.pattern in body should match '^[a-z]+$'",
                'spec.ref.name: Invalid value: "": spec.ref.name in body should be at least 1 chars long',
            ],
            id="pattern and length",
        ),
        pytest.param({"size": 3, "tags": ["a", "a"]}, ['spec.tags[1]: Duplicate value: "a"'], id="set"),
        pytest.param(
            {"size": 3, "tags": ["a", "b", "c", "d"]},
            ["spec.tags: Too many: 4: must have at most 3 items", NOT_CHECKED],
            id="too many",
        ),
        pytest.param(
            {"size": 3, "parts": [{"name": "p"}, {"name": "p"}]},
            ['spec.parts[1]: Duplicate value: {"name":"p"}'],
            id="map list",
        ),
        pytest.param(
            {"size": 3, "parts": [{"weight": 1}]}, ["spec.parts[0].name: Required value", NOT_CHECKED], id="missing key"
        ),
        pytest.param(
            {"size": 3, "deadline": 2}, ["spec: Invalid value: deadline must not be less than size"], id="rule"
        ),
        pytest.param(
            {"size": 3, "port": 1.5},
            [
                'spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number"',
                NOT_CHECKED,
            ],
            id="int or string",
        ),
    ],
)
def test_validation_on_create(spec: dict[str, Any] | None, expected: list[str]) -> None:
    """Errors come with the recorded texts, and rules are skipped when the structure is wrong."""
    assert errors(prepared(widget(spec))) == expected


def test_transition_rules_run_on_update_only() -> None:
    """`self == oldSelf` compares with the stored object, and does not apply to what was not there."""
    old = prepared(widget({"size": 3, "ref": {"name": "r"}}))
    changed = prepared(widget({"size": 3, "ref": {"name": "changed"}}))
    assert errors(changed) == []
    assert errors(changed, old) == ["spec.ref: Invalid value: field is immutable"]
    assert errors(prepared(widget({"size": 4, "ref": {"name": "r"}})), old) == []
    assert errors(changed, prepared(widget({"size": 3}))) == []


def test_status_is_checked_by_itself_on_its_endpoint() -> None:
    """A status update names fields relative to the status and leaves the keywords of the spec alone."""
    obj = widget({"size": 99}, status={"progress": 101, "conditions": [{"type": "x"}]})
    assert errors(obj, widget({"size": 99}), "status") == [
        "status.conditions[0].status: Required value",
        "status.progress: Invalid value: 101: progress in body should be less than or equal to 100",
        NOT_CHECKED,
    ]


def test_stored_duplicates_do_not_block_updates() -> None:
    """An object that already violates list uniqueness can still be changed."""
    old = widget({"size": 3, "tags": ["a", "a"]})
    assert errors(widget({"size": 4, "tags": ["a", "a"]}), old) == []


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
