"""What still has to be applied."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.framework.comparison import differences


@pytest.mark.parametrize(
    ("applied", "live"),
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, id="what-others-added"),
        pytest.param({"a": {}}, {}, id="empty-mapping-left-out"),
        pytest.param({"a": []}, {}, id="empty-list-left-out"),
        pytest.param({"a": [1, 2]}, {"a": [1, 2]}, id="plain-list"),
        pytest.param(
            {"env": [{"name": "a", "value": "1"}]}, {"env": [{"name": "b"}, {"name": "a", "value": "1"}]}, id="by-name"
        ),
        pytest.param(
            {"ports": [{"containerPort": 1}]}, {"ports": [{"containerPort": 1, "protocol": "TCP"}]}, id="default"
        ),
        pytest.param(
            {"m": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]},
            {"m": [{"name": "v", "mountPath": "/b"}, {"name": "v", "mountPath": "/a"}]},
            id="one-volume-mounted-twice",
        ),
        pytest.param({"cpu": 1.0}, {"cpu": 1}, id="integral-float"),
    ],
)
def test_nothing_to_apply(applied: Any, live: Any) -> None:
    """Defaults and additions of others are no difference."""
    assert list(differences(applied, live)) == []


@pytest.mark.parametrize(
    ("applied", "live", "paths"),
    [
        pytest.param({"a": 1}, {}, ["a"], id="absent"),
        pytest.param({"a": {"b": 1}}, {}, ["a"], id="absent-mapping"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 2, "c": 2}}, ["a.b"], id="value"),
        pytest.param({"a": True}, {"a": 1}, ["a"], id="true-is-not-one"),
        pytest.param({"a": False}, {}, ["a"], id="false-is-not-absent"),
        pytest.param(
            {"c": [{"name": "x", "image": "2"}]}, {"c": [{"name": "x", "image": "1"}]}, ["c[x].image"], id="item"
        ),
        pytest.param({"c": [{"name": "x"}]}, {"c": []}, ["c[x]"], id="absent-item"),
        pytest.param({"c": [1]}, {"c": [1, 2]}, ["c"], id="length"),
        pytest.param({"c": [1, 3]}, {"c": [1, 2]}, ["c[1]"], id="position"),
        pytest.param({"c": []}, {"c": [1]}, ["c"], id="emptied"),
        pytest.param({"c": {"d": 1}}, {"c": "text"}, ["c"], id="other-type"),
    ],
)
def test_differences(applied: Any, live: Any, paths: list[str]) -> None:
    """Each field that is absent or different is named once."""
    assert list(differences(applied, live)) == paths
