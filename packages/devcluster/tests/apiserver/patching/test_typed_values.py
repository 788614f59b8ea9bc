"""Taking values apart, comparing and merging them by type."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packages.devcluster.tests.apiserver.widgets import WIDGET_SCHEMA
from trainer_kube_testing.api_semantics import field_sets
from trainer_kube_testing.api_semantics.typed_values import (
    TypedValueError,
    compare,
    fields_of,
    merge,
    remove,
    with_named_parents,
)

TYPE = WIDGET_SCHEMA.typing

parts = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcd")}, optional={"weight": st.integers(0, 3)}),
    max_size=4,
    unique_by=lambda part: part["name"],
)
widgets = st.fixed_dictionaries(
    {},
    optional={
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "size": st.integers(0, 3),
                "labels": st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), min_size=1),
                "parts": parts,
                "tags": st.lists(st.sampled_from("abc"), unique=True),
            },
        ),
        "status": st.fixed_dictionaries({"phase": st.sampled_from("PQ")}),
    },
)


def shown(paths: frozenset[tuple[str, ...]]) -> set[str]:
    return {field_sets.display(path) for path in paths}


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        pytest.param({"spec": {"size": 3}}, {".spec.size"}, id="leaf"),
        pytest.param({"spec": {"labels": {"l": "1"}}}, {".spec.labels.l"}, id="map key"),
        pytest.param({"spec": {"labels": {}}}, {".spec.labels"}, id="empty map"),
        pytest.param(
            {"spec": {"parts": [{"name": "p", "weight": 1}]}},
            {'.spec.parts[name="p"]', '.spec.parts[name="p"].name', '.spec.parts[name="p"].weight'},
            id="list item",
        ),
        pytest.param({"spec": {"parts": []}}, set(), id="empty map list"),
        pytest.param({"spec": {"tags": ["a"]}}, {'.spec.tags[="a"]'}, id="set"),
        pytest.param({"spec": {"free": {"a": [1, 2]}}}, {".spec.free.a"}, id="free form"),
        pytest.param({"spec": {"mode": None}}, {".spec.mode"}, id="null"),
    ],
)
def test_fields_of_a_configuration(value: dict[str, Any], paths: set[str]) -> None:
    """A configuration states its leaves and items, not the structures around them."""
    assert shown(fields_of(value, TYPE)) == paths


ONE = ".spec.parts: element 0: associative list with keys"
"""How messages about the first item of a map list start."""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param({"spec": {"unknown": 1}}, ".spec.unknown: field not declared in schema", id="unknown"),
        pytest.param({"spec": {"size": "x"}}, '.spec.size: expected numeric (int or float), got "x"', id="type"),
        pytest.param({"spec": {"mode": True}}, ".spec.mode: expected string, got true", id="boolean"),
        pytest.param({"spec": {"mode": [{}]}}, ".spec.mode: expected string, got [{}]", id="list for text"),
        pytest.param({"spec": ["a", {"b": 1}]}, '.spec: expected map, got ["a",{"b":1}]', id="list for a map"),
        pytest.param({"spec": {"parts": [1]}}, f"{ONE} may not have non-map elements", id="number for an item"),
        pytest.param({"spec": {"parts": [None]}}, f"{ONE} may not have a null element", id="null for an item"),
        pytest.param(
            {"spec": {"parts": [{"weight": 1}]}},
            f'{ONE} has an element that omits all key fields ["name"] (and doesn\'t have default values for any key '
            "fields)",
            id="no key",
        ),
        pytest.param(
            {"spec": {"tags": [{}]}},
            ".spec.tags: element 0: associative list without keys has an element that's a map type",
            id="map in a set",
        ),
        pytest.param({"spec": {"tags": ["a", "a"]}}, '.spec.tags: duplicate entries for key [="a"]', id="duplicate"),
        pytest.param(
            {"x": 1, "y": 2},
            "errors:\n  .x: field not declared in schema\n  .y: field not declared in schema",
            id="several",
        ),
    ],
)
def test_configurations_that_do_not_fit(value: dict[str, Any], message: str) -> None:
    """Every mistake is named by path."""
    with pytest.raises(TypedValueError) as caught:
        fields_of(value, TYPE)
    assert str(caught.value) == message


def test_compare() -> None:
    """New containers count as added, changed leaves as modified, vanished ones as removed."""
    old = {"spec": {"size": 1, "parts": [{"name": "p", "weight": 1}], "tags": ["a"]}}
    new = {
        "spec": {"size": 2, "parts": [{"name": "p"}, {"name": "q"}], "tags": ["a", "b"], "labels": {"l": "1"}},
        "status": {"phase": "P"},
    }
    changes = compare(old, new, TYPE)
    assert shown(changes.added) == {
        '.spec.parts[name="q"]', '.spec.parts[name="q"].name', '.spec.tags[="b"]', ".spec.labels", ".spec.labels.l",
        ".status", ".status.phase",
    }  # fmt: skip
    assert shown(changes.modified) == {".spec.size"}
    assert shown(changes.removed) == {'.spec.parts[name="p"].weight'}


def test_null_containers_are_there_already() -> None:
    """Filling a list that was null adds its items, not the list (Go writes required empty lists as null)."""
    changes = compare({"spec": {"parts": None}}, {"spec": {"parts": [{"name": "p"}]}}, TYPE)
    assert shown(changes.added) == {'.spec.parts[name="p"]', '.spec.parts[name="p"].name'}


def test_items_that_share_a_key_are_one_value() -> None:
    """Duplicates cannot be distinguished, so a change of one is a change of the key."""
    old = {"spec": {"parts": [{"name": "p", "weight": 1}, {"name": "p", "weight": 2}]}}
    new = {"spec": {"parts": [{"name": "p", "weight": 1}, {"name": "p", "weight": 3}]}}
    assert shown(compare(old, new, TYPE).modified) == {'.spec.parts[name="p"]'}


@given(widgets)
def test_comparing_with_nothing_adds_everything(obj: dict[str, Any]) -> None:
    """The fields of an object are all added when there was none."""
    changes = compare({}, obj, TYPE)
    assert changes.modified == changes.removed == frozenset()
    assert fields_of(obj, TYPE) <= changes.added
    assert compare(obj, obj, TYPE).added == frozenset()


@given(widgets, widgets)
def test_merge_takes_the_applied_fields_and_keeps_the_others(live: dict[str, Any], applied: dict[str, Any]) -> None:
    """After a merge nothing of the configuration is different, and nothing of the live object is lost."""
    merged = merge(live, applied, TYPE)
    against_applied = compare(applied, merged, TYPE)
    # A stated empty list is no field: it leaves the live items alone.
    assert against_applied.modified == against_applied.removed == frozenset()
    assert compare(live, merged, TYPE).removed == frozenset()
    assert merge(merged, applied, TYPE) == merged


@given(widgets)
def test_removing_all_fields_leaves_nothing_of_them(obj: dict[str, Any]) -> None:
    """Nothing that was removed is left."""
    owned = fields_of(obj, TYPE)
    rest = remove(obj, owned, TYPE)
    assert fields_of(rest, TYPE) & owned == frozenset()
    assert remove(obj, frozenset(), TYPE) == obj


def test_remove_takes_what_is_below() -> None:
    """Removing an item of a map list removes all of it; a map that nothing is left of becomes null."""
    obj = {"spec": {"size": 1, "parts": [{"name": "p", "weight": 1}, {"name": "q"}], "labels": {"a": "b"}}}
    doomed = frozenset({("f:spec", "f:parts", 'k:{"name":"p"}'), ("f:spec", "f:labels", "f:a")})
    assert remove(obj, doomed, TYPE) == {"spec": {"size": 1, "parts": [{"name": "q"}], "labels": None}}


def test_named_parents_are_declared_fields() -> None:
    """Structures that lead to a path count, items and map keys do not."""
    owned = frozenset({("f:spec", "f:parts", 'k:{"name":"p"}', "f:weight"), ("f:spec", "f:free", "f:a", "f:b")})
    assert with_named_parents(owned, TYPE) - owned == {("f:spec",), ("f:spec", "f:parts"), ("f:spec", "f:free")}


def test_atomic_values_are_one_leaf() -> None:
    """An atomic list in a free-form field is added as a whole."""
    assert shown(compare({"spec": {}}, {"spec": {"free": {"a": [1]}}}, TYPE).added) == {".spec.free", ".spec.free.a"}
