from __future__ import annotations

from typing import Any

import pytest

from trainer.kube.objects import Object, holders_at, is_at_its_end, mapping_at, objects_in, set_condition

DELETED = {"deletionTimestamp": "2026-11-21T12:00:00Z"}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param({"metadata": {}}, False, id="lives"),
        pytest.param({"metadata": DELETED}, True, id="deleted"),
        pytest.param({"metadata": {**DELETED, "finalizers": ["example.com/wait"]}}, False, id="finalizers"),
        pytest.param({"metadata": {**DELETED, "deletionGracePeriodSeconds": 30}}, False, id="grace period"),
        pytest.param({"metadata": DELETED, "spec": {"finalizers": ["kubernetes"]}}, False, id="namespace"),
        pytest.param({"metadata": DELETED, "spec": {"finalizers": []}}, True, id="namespace that is empty"),
    ],
)
def test_end_of_a_deletion(obj: Object, expected: bool) -> None:
    """The server keeps an object as long as something holds it."""
    assert is_at_its_end(obj) is expected


@pytest.mark.parametrize(
    ("value", "path", "expected"),
    [
        pytest.param({"a": {"b": {"c": 1}}}, ("a", "b"), {"c": 1}, id="there"),
        pytest.param({"a": 1}, (), {"a": 1}, id="itself"),
        pytest.param({"a": {}}, ("a", "b"), {}, id="absent"),
        pytest.param({"a": [1]}, ("a", "b"), {}, id="in a list"),
        pytest.param({"a": "b"}, ("a",), {}, id="text"),
        pytest.param(None, ("a",), {}, id="nothing"),
    ],
)
def test_mapping_at(value: Any, path: tuple[str, ...], expected: Object) -> None:
    """What is no mapping counts as an empty one."""
    assert mapping_at(value, *path) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param([{"a": 1}, None, 2, {}], [{"a": 1}, {}], id="list"),
        pytest.param({"a": {}}, [], id="mapping"),
        pytest.param(None, [], id="nothing"),
    ],
)
def test_objects_in(value: Any, expected: list[Object]) -> None:
    """What is no object is left out."""
    assert objects_in(value) == expected


BEFORE, NOW = "2026-11-21T12:00:00Z", "2026-11-21T13:00:00Z"
READY = {"type": "Ready", "status": "True", "reason": "Made", "lastTransitionTime": BEFORE}
OTHER = {"type": "Other", "status": "False", "lastTransitionTime": BEFORE}


@pytest.mark.parametrize(
    ("present", "status", "expected"),
    [
        pytest.param([], "True", [("Ready", "True", NOW)], id="first"),
        pytest.param([OTHER], "True", [("Other", "False", BEFORE), ("Ready", "True", NOW)], id="another type"),
        pytest.param([READY, OTHER], "True", [("Ready", "True", BEFORE), ("Other", "False", BEFORE)], id="same status"),
        pytest.param([READY, OTHER], "False", [("Ready", "False", NOW), ("Other", "False", BEFORE)], id="new status"),
    ],
)
def test_set_condition(present: list[Object], status: str, expected: list[tuple[str, str, str]]) -> None:
    """The transition time is that of the last change of the status; reason and message are always the new ones."""
    unchanged = [dict(each) for each in present]
    conditions = set_condition(present, {"type": "Ready", "status": status, "reason": "Again"}, NOW)
    assert [(each["type"], each["status"], each["lastTransitionTime"]) for each in conditions] == expected
    assert next(each["reason"] for each in conditions if each["type"] == "Ready") == "Again"
    assert present == unchanged


@pytest.mark.parametrize(
    ("value", "path", "expected"),
    [
        pytest.param({"spec": {"claims": []}}, "spec.claims", [[]], id="field"),
        pytest.param({"spec": {}}, "spec.claims", [], id="absent"),
        pytest.param({"spec": None}, "spec.claims", [], id="no mapping on the way"),
        pytest.param({"jobs": [{"name": "a"}, {}, 1, {"name": "b"}]}, "jobs.name", ["a", "b"], id="items of a list"),
        pytest.param({"jobs": [{"spec": {"x": 1}}, {"spec": {}}]}, "jobs.spec.x", [1], id="below the items"),
        pytest.param([{"name": "a"}], "name", ["a"], id="a list itself"),
        pytest.param(None, "name", [], id="nothing"),
    ],
)
def test_holders_at(value: Any, path: str, expected: list[Any]) -> None:
    """Every mapping that has the field, with the field's name in it."""
    assert [holder[name] for holder, name in holders_at(value, path)] == expected
