"""The patch types."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from trainer.kube.errors import BadRequestError, InvalidError, KubeError
from trainer.kube.testing.patches import json_patch, merge, strategic_merge

READY = {"type": "Ready", "status": "True"}
OLD = {"type": "Old", "status": "False"}


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        pytest.param({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}, id="nested"),
        pytest.param({"a": 1}, {"a": None}, {}, id="remove"),
        pytest.param({"a": [1]}, {"a": [2]}, {"a": [2]}, id="lists-are-replaced"),
        pytest.param({"a": 1}, {"a": {"b": None, "c": 2}}, {"a": {"c": 2}}, id="value-becomes-object"),
    ],
)
def test_merge(target: Any, patch: Any, expected: Any) -> None:
    """A merge patch follows RFC 7386 and leaves its arguments as they are."""
    before = copy.deepcopy((target, patch))
    assert merge(target, patch) == expected
    assert (target, patch) == before


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        pytest.param({"a": 1}, {"a": None, "b": 2}, {"b": 2}, id="fields"),
        pytest.param({"args": [1, 2]}, {"args": [3]}, {"args": [3]}, id="other-lists-are-replaced"),
        pytest.param(
            {"conditions": [OLD, READY]},
            {"conditions": [{"type": "Ready", "status": "False"}, {"type": "New"}]},
            {"conditions": [OLD, {"type": "Ready", "status": "False"}, {"type": "New"}]},
            id="conditions-by-type",
        ),
        pytest.param(
            {"ownerReferences": [{"uid": "1", "name": "a"}, {"uid": "2", "name": "b"}]},
            {"ownerReferences": [{"uid": "1", "$patch": "delete"}, {"uid": "3", "name": "c"}]},
            {"ownerReferences": [{"uid": "2", "name": "b"}, {"uid": "3", "name": "c"}]},
            id="owner-references-by-uid",
        ),
        pytest.param(
            {"finalizers": ["a", "b"]},
            {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c", "b"]},
            {"finalizers": ["b", "c"]},
            id="finalizers-as-a-set",
        ),
        pytest.param(
            {"finalizers": ["a"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}, {}, id="last-finalizer-taken-away"
        ),
        pytest.param(
            {"ports": [{"containerPort": 80}]},
            {"ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}]},
            {"ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}]},
            id="container-ports",
        ),
        pytest.param(
            {"containers": [{"name": "a", "image": "x", "env": [{"name": "E", "value": "1"}]}]},
            {"containers": [{"name": "a", "env": [{"name": "F", "value": "2"}]}]},
            {
                "containers": [
                    {"name": "a", "image": "x", "env": [{"name": "E", "value": "1"}, {"name": "F", "value": "2"}]}
                ]
            },
            id="lists-in-lists",
        ),
        pytest.param(
            {"conditions": [OLD]},
            {"conditions": [READY, {"$patch": "replace"}]},
            {"conditions": [READY]},
            id="replaced-list",
        ),
        pytest.param(
            {"spec": {"a": 1, "b": 2}}, {"spec": {"$patch": "replace", "c": 3}}, {"spec": {"c": 3}}, id="replaced-map"
        ),
        pytest.param({"spec": {"a": 1}}, {"spec": {"$patch": "delete"}}, {"spec": {}}, id="emptied-map"),
        pytest.param(
            {"strategy": {"type": "A", "rolling": {}}},
            {"strategy": {"$retainKeys": ["type"], "type": "B"}},
            {"strategy": {"type": "B"}},
            id="retained-keys",
        ),
        pytest.param(
            {"conditions": [OLD]},
            {"$setElementOrder/conditions": [{"type": "Old"}], "conditions": [READY]},
            {"conditions": [OLD, READY]},
            id="order-is-ignored",
        ),
    ],
)
def test_strategic_merge(target: Any, patch: Any, expected: Any) -> None:
    """Known lists merge by key, and directives are obeyed; the arguments stay as they are."""
    before = copy.deepcopy((target, patch))
    assert strategic_merge(target, patch) == expected
    assert (target, patch) == before


@pytest.mark.parametrize(
    "patch", [{"$patch": "sort"}, {"conditions": [{"status": "True"}]}], ids=["directive", "item-without-key"]
)
def test_bad_strategic_merge(patch: Any) -> None:
    """What makes no sense is refused."""
    with pytest.raises(BadRequestError):
        strategic_merge({}, patch)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        pytest.param({"op": "add", "path": "/b", "value": 3}, {"a": [1, 2], "b": 3, "c~/": {"d": 4}}, id="add"),
        pytest.param({"op": "add", "path": "/a/1", "value": 9}, {"a": [1, 9, 2], "c~/": {"d": 4}}, id="insert"),
        pytest.param({"op": "add", "path": "/a/-", "value": 9}, {"a": [1, 2, 9], "c~/": {"d": 4}}, id="append"),
        pytest.param({"op": "remove", "path": "/a/0"}, {"a": [2], "c~/": {"d": 4}}, id="remove-item"),
        pytest.param({"op": "remove", "path": "/c~0~1/d"}, {"a": [1, 2], "c~/": {}}, id="escaped-path"),
        pytest.param({"op": "replace", "path": "/a", "value": 1}, {"a": 1, "c~/": {"d": 4}}, id="replace"),
        pytest.param({"op": "replace", "path": "", "value": {}}, {}, id="replace-all"),
        pytest.param({"op": "move", "from": "/c~0~1/d", "path": "/d"}, {"a": [1, 2], "c~/": {}, "d": 4}, id="move"),
        pytest.param(
            {"op": "copy", "from": "/a", "path": "/b"}, {"a": [1, 2], "b": [1, 2], "c~/": {"d": 4}}, id="copy"
        ),
        pytest.param({"op": "test", "path": "/a", "value": [1, 2]}, {"a": [1, 2], "c~/": {"d": 4}}, id="test"),
    ],
)
def test_json_patch(operation: Any, expected: Any) -> None:
    """A JSON patch follows RFC 6902 and leaves its arguments as they are."""
    target = {"a": [1, 2], "c~/": {"d": 4}}
    before = copy.deepcopy(target)
    assert json_patch(target, [operation]) == expected
    assert target == before


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        pytest.param({"op": "test", "path": "/a", "value": 2}, InvalidError, id="test-fails"),
        pytest.param({"op": "replace", "path": "/b", "value": 2}, InvalidError, id="replace-missing"),
        pytest.param({"op": "remove", "path": "/l/1"}, InvalidError, id="no-such-item"),
        pytest.param({"op": "remove", "path": "/l/-1"}, InvalidError, id="negative-index"),
        pytest.param({"op": "add", "path": "/l/3", "value": 2}, InvalidError, id="behind-the-end"),
        pytest.param({"op": "add", "path": "a", "value": 2}, InvalidError, id="no-pointer"),
        pytest.param({"op": "sort", "path": "/a"}, BadRequestError, id="unknown-operation"),
        pytest.param({"op": "remove"}, BadRequestError, id="no-path"),
        pytest.param("remove", BadRequestError, id="no-object"),
    ],
)
def test_bad_json_patch(operation: Any, error: type[KubeError]) -> None:
    """What is malformed, or does not apply, is refused."""
    with pytest.raises(error):
        json_patch({"a": 1, "l": [1]}, [operation])
