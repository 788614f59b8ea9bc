"""The patch between two objects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from trainer.kube.webhook.json_patch import json_patch
from trainer_kube_testing.api_semantics import json_patch as json_patches


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def remove(path: str) -> dict[str, Any]:
    return {"op": "remove", "path": path}


@pytest.mark.parametrize(
    ("old", "new", "operations"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="equal"),
        pytest.param({}, {"a": {"b": 1}}, [add("/a", {"b": 1})], id="add"),
        pytest.param({"a": 1, "b": 2}, {"b": 2}, [remove("/a")], id="remove"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}, [replace("/a/b", 3)], id="replace-deep"),
        pytest.param({"a": None}, {"a": {}}, [replace("/a", {})], id="null-to-object"),
        pytest.param({}, {"a/b~c": 1}, [add("/a~1b~0c", 1)], id="escaped"),
        pytest.param({"a": 1}, {"a": True}, [replace("/a", True)], id="one-is-not-true"),
        pytest.param({"a": 1}, {"a": 1.0}, [replace("/a", 1.0)], id="number-as-shown"),
        pytest.param({"a": [2, 3]}, {"a": [1, 2, 3]}, [add("/a/0", 1)], id="prepend"),
        pytest.param({"a": [1, 2, 3, 4]}, {"a": [1, 4]}, [remove("/a/2"), remove("/a/1")], id="remove-run"),
        pytest.param({"a": [1, 2, 3]}, {"a": []}, [remove("/a/2"), remove("/a/1"), remove("/a/0")], id="remove-all"),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}, {"name": "B"}]},
            {"env": [{"name": "A", "value": "2"}, {"name": "B"}]},
            [replace("/env/0/value", "2")],
            id="item",
        ),
    ],
)
def test_operations(old: dict[str, Any], new: dict[str, Any], operations: list[dict[str, Any]]) -> None:
    """Changes of one place are one operation at that place."""
    assert json_patch(old, new) == operations


_names = st.sampled_from(["a", "b", "a/b", "~", "", "0"])
_leaves = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, 1.0, 1.5]), st.text(max_size=2))


def _nested(children: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.lists(children, max_size=5) | st.dictionaries(_names, children, max_size=4)


_values = st.recursive(_leaves, _nested, max_leaves=12)
_objects = st.dictionaries(_names, _values, max_size=4)


@given(_objects, _objects)
def test_applied_to_the_old_it_gives_the_new(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Whatever the two are; compared as JSON, where 1, 1.0 and true differ."""
    patched = json_patches.json_patch(old, json_patch(old, new))
    order = msgspec.json.Encoder(order="deterministic")
    assert order.encode(patched) == order.encode(new)


@given(_objects)
def test_nothing_changes_nothing(obj: dict[str, Any]) -> None:
    """Of an object and its copy there is no patch."""
    assert json_patch(obj, msgspec.json.decode(msgspec.json.encode(obj))) == []
