"""Taints of nodes and tolerations of pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from trainer.kube.clock import timestamp
from trainer.kube.objects import Object
from trainer.workloads.tolerations import UNREACHABLE, eviction_time, untolerated

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taint", "toleration", "tolerated"),
    [
        pytest.param({"key": "gpu", "effect": "NoExecute"}, {"key": "gpu", "operator": "Exists"}, True, id="exists"),
        pytest.param(TAINT, {"operator": "Exists"}, True, id="any key"),
        pytest.param(TAINT, {"key": "gpu", "value": "yes"}, True, id="equal"),
        pytest.param(TAINT, {"key": "gpu", "value": "no"}, False, id="unequal"),
        pytest.param(TAINT, {"value": "yes"}, False, id="no key"),
        pytest.param(TAINT, {"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False, id="other effect"),
        pytest.param(TAINT, {"key": "gpu", "operator": "Gt", "value": "1"}, False, id="unknown operator"),
        pytest.param({"key": "gpu", "effect": "PreferNoSchedule"}, {"key": "cpu"}, True, id="preference"),
    ],
)
def test_untolerated(taint: Object, toleration: Object, tolerated: bool) -> None:
    """Taints keep pods away that do not tolerate them, except those that only prefer to."""
    assert untolerated([taint], [toleration]) == ([] if tolerated else [taint])


def lost(age: float, key: str = UNREACHABLE) -> Object:
    """A taint that was added so many seconds ago."""
    return {"key": key, "effect": "NoExecute", "timeAdded": timestamp(NOW - timedelta(seconds=age))}


def stays(seconds: int | None, key: str = UNREACHABLE) -> Object:
    """A toleration for so many seconds; None: without an end."""
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **limit}


@pytest.mark.parametrize(
    ("taints", "tolerations", "left"),
    [
        pytest.param([], [], None, id="no taint"),
        pytest.param([{**lost(9), "effect": "NoSchedule"}], [], None, id="taint for new pods"),
        pytest.param([lost(9)], [stays(300)], 291, id="tolerated for a while"),
        pytest.param([lost(9)], [stays(None)], None, id="tolerated"),
        pytest.param([lost(9)], [stays(-1)], -9, id="negative"),
        pytest.param([lost(9)], [], -9, id="not tolerated"),
        pytest.param([lost(9), lost(1, "other")], [stays(300), stays(20, "other")], 19, id="the first of several"),
        pytest.param([{"key": "other", "effect": "NoExecute"}], [stays(20, "other")], 20, id="taint without a time"),
    ],
)
def test_eviction_time(taints: list[Object], tolerations: list[Object], left: float | None) -> None:
    """A pod is deleted when it has tolerated a NoExecute taint for as long as it does."""
    found = eviction_time({"spec": {"tolerations": tolerations}}, {"spec": {"taints": taints}}, NOW)
    assert found == (None if left is None else NOW + timedelta(seconds=left))
