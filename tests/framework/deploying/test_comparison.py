"""What still has to be applied."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.framework.deploying.comparison import differences


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
        pytest.param({"a": False, "b": 0, "c": ""}, {}, id="zero-values-left-out"),
        pytest.param(
            {"r": {"requests": {"cpu": "0.5", "nvidia.com/gpu": 1}, "limits": {"memory": "1024Mi"}}},
            {"r": {"requests": {"cpu": "500m", "nvidia.com/gpu": "1"}, "limits": {"memory": "1Gi"}}},
            id="amounts-written-in-another-way",
        ),
        pytest.param({"emptyDir": {"sizeLimit": "1000M"}}, {"emptyDir": {"sizeLimit": "1G"}}, id="size-limit"),
        pytest.param(
            {"metrics": [{"type": "Pods", "pods": {"target": {"averageValue": "0.5", "value": "1000"}}}]},
            {"metrics": [{"type": "Pods", "pods": {"target": {"averageValue": "500m", "value": "1k"}}}]},
            id="targets-of-autoscalers",
        ),
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
        pytest.param({"a": True}, {}, ["a"], id="true-is-not-absent"),
        pytest.param({"a": False}, {"a": True}, ["a"], id="false-is-not-true"),
        pytest.param({"a": "1000m"}, {"a": "1"}, ["a"], id="words-that-look-like-amounts"),
        pytest.param(
            {"env": [{"name": "a", "value": "0.5"}]},
            {"env": [{"name": "a", "value": "500m"}]},
            ["env[a].value"],
            id="variables-that-look-like-amounts",
        ),
        pytest.param(
            {"r": {"requests": {"cpu": "1"}}}, {"r": {"requests": {"cpu": "2"}}}, ["r.requests.cpu"], id="amount"
        ),
        pytest.param(
            {"r": {"requests": {"cpu": "1"}}}, {"r": {"requests": {"cpu": "x"}}}, ["r.requests.cpu"], id="no-amount"
        ),
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
