"""JSON, merge and strategic merge patches."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer_devcluster.apiserver.objects.built_in_types import built_in_type
from trainer_kube_testing.api_semantics.json_patch import MAX_OPERATIONS, json_patch
from trainer_kube_testing.api_semantics.patches import PatchError, merge_patch, strategic_merge_patch
from trainer_kube_testing.api_semantics.value_types import Typing

CONFIG_MAP: dict[str, dict[str, Any]] = {"metadata": {"labels": {"l": "1"}}, "data": {"b": "2", "c": "3"}}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=3), children, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=4)


def pod_type() -> Typing:
    typing = built_in_type("v1", "Pod")
    assert typing is not None
    return typing


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        pytest.param([{"op": "test", "path": "/data/c", "value": "no"}], 422, id="failing test"),
        pytest.param([{"op": "replace", "path": "", "value": 1}], 422, id="no object left"),
        pytest.param({"data": {}}, 400, id="an object"),
        pytest.param([{"op": "dance", "path": "/data"}], 400, id="unknown operation"),
        pytest.param(
            [{"op": "test", "path": "/data/c", "value": "3"}] * (MAX_OPERATIONS + 1),
            413,
            id="too many",
        ),
        pytest.param(
            # Each copy doubles the object: without a limit, gigabytes at the end.
            [{"op": "copy", "from": "/data", "path": f"/data/{number}"} for number in range(22)],
            422,
            id="copies without end",
        ),
    ],
)
def test_json_patch_errors(operations: object, code: int) -> None:
    """The answer says whether the patch is malformed or does not apply."""
    with pytest.raises(PatchError) as caught:
        json_patch(CONFIG_MAP, operations)
    assert caught.value.answer.code == code


@given(objects, values)
def test_json_patch_only_fails_with_patch_errors(document: dict[str, Any], operations: Any) -> None:
    """Whatever stands in the body, the answer is an object or a PatchError."""
    with contextlib.suppress(PatchError):
        assert isinstance(json_patch(document, operations), dict)


@pytest.mark.parametrize("patch", [[], "text", 3, None])
def test_merge_patches_must_be_objects(patch: object) -> None:
    """A merge patch of a whole object is an object."""
    for apply in (merge_patch, lambda doc, body: strategic_merge_patch(doc, body, pod_type())):
        with pytest.raises(PatchError) as caught:
            apply({}, patch)
        assert caught.value.answer.code == 400


POD = {
    "metadata": {"finalizers": ["a", "b"], "labels": {"x": "1"}},
    "spec": {
        "containers": [{"name": "c", "image": "i", "args": ["1"]}, {"name": "d", "image": "j"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "nodeSelector": {"a": "b"},
    },
}


@pytest.mark.parametrize(
    ("patch", "path", "expected"),
    [
        pytest.param(
            {"spec": {"containers": [{"name": "d", "image": "k"}, {"name": "e"}]}},
            ("spec", "containers"),
            [{"name": "c", "image": "i", "args": ["1"]}, {"name": "d", "image": "k"}, {"name": "e"}],
            id="items merge by key",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "c", "args": ["2", "3"]}]}},
            ("spec", "containers", 0, "args"),
            ["2", "3"],
            id="atomic lists replace",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "c", "$patch": "delete"}]}},
            ("spec", "containers"),
            [{"name": "d", "image": "j"}],
            id="delete an item",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "only"}, {"$patch": "replace"}]}},
            ("spec", "containers"),
            [{"name": "only"}],
            id="replace a list",
        ),
        pytest.param(
            {"spec": {"nodeSelector": {"$patch": "replace", "c": "d"}}},
            ("spec", "nodeSelector"),
            {"c": "d"},
            id="replace a map",
        ),
        pytest.param({"spec": {"nodeSelector": {"$patch": "delete"}}}, ("spec", "nodeSelector"), {}, id="empty a map"),
        pytest.param(
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            ("metadata", "finalizers"),
            ["b"],
            id="delete from a set",
        ),
        pytest.param(
            {"metadata": {"$setElementOrder/finalizers": ["c", "a"], "finalizers": ["c"]}},
            ("metadata", "finalizers"),
            ["b", "c", "a"],
            id="order of a set",
        ),
        pytest.param(
            {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}},
            ("spec", "volumes"),
            [{"name": "v", "hostPath": {"path": "/"}}],
            id="retain keys",
        ),
        pytest.param({"metadata": {"labels": {"x": None}}}, ("metadata", "labels"), {}, id="null removes"),
    ],
)
def test_strategic_merge_patch(patch: dict[str, Any], path: tuple[str | int, ...], expected: object) -> None:
    """Lists merge as their types and the directives in the patch say."""
    document = copy.deepcopy(POD)
    result: Any = strategic_merge_patch(document, patch, pod_type())
    for step in path:
        result = result[step]
    assert result == expected
    assert document == POD


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"spec": {"containers": [{"image": "i"}]}}, id="no merge key"),
        pytest.param({"spec": {"$patch": "dance"}}, id="unknown directive"),
        pytest.param({"spec": {"containers": ["text"]}}, id="scalar among objects"),
        pytest.param({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}, id="directive is no list"),
        pytest.param({"spec": {"$retainKeys": ["x"], "nodeName": "n"}}, id="retain keys misses a field"),
    ],
)
def test_malformed_strategic_merge_patches(patch: dict[str, Any]) -> None:
    """A wrong directive or item is the client's mistake."""
    with pytest.raises(PatchError) as caught:
        strategic_merge_patch(POD, patch, pod_type())
    assert caught.value.answer.code == 400
