"""How fast an autoscaler goes where its metrics point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trainer_devcluster.controllers.horizontal_pod_autoscaler.behavior import History, settle, tolerance_of

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def spec(**fields: Any) -> Object:
    """An autoscaler between 1 and 100 replicas."""
    return {"minReplicas": 1, "maxReplicas": 100} | fields


def policies(*entries: tuple[str, int, int], **fields: Any) -> Object:
    """Rules of one direction, from type, value and period of each policy."""
    return {
        "policies": [{"type": kind, "value": value, "periodSeconds": period} for kind, value, period in entries],
        **fields,
    }


NOW = {"stabilizationWindowSeconds": 0}


@pytest.mark.parametrize(
    ("fields", "current", "wanted", "replicas", "reason"),
    [
        pytest.param({}, 2, 2, 2, "DesiredWithinRange", id="as-it-is"),
        pytest.param({}, 2, 5, 5, "DesiredWithinRange", id="up"),
        pytest.param({}, 1, 9, 5, "ScaleUpLimit", id="at-most-four-more"),
        pytest.param({}, 10, 50, 20, "ScaleUpLimit", id="at-most-twice-as-many"),
        pytest.param({"maxReplicas": 3}, 2, 5, 3, "TooManyReplicas", id="up-to-the-most"),
        pytest.param({"behavior": {"scaleDown": policies(("Percent", 100, 15), **NOW)}}, 9, 3, 3, None, id="down"),
        pytest.param(
            {"behavior": {"scaleDown": policies(("Pods", 2, 15), **NOW)}}, 9, 3, 7, "ScaleDownLimit", id="two-less"
        ),
        pytest.param(
            {"behavior": {"scaleDown": policies(("Percent", 50, 15), **NOW)}}, 9, 1, 4, "ScaleDownLimit", id="half"
        ),
        pytest.param(
            {"minReplicas": 4, "behavior": {"scaleDown": policies(("Percent", 100, 15), **NOW)}},
            9,
            1,
            4,
            "TooFewReplicas",
            id="down-to-the-least",
        ),
        pytest.param(
            {"behavior": {"scaleUp": policies(("Pods", 1, 15), ("Percent", 100, 15), selectPolicy="Min")}},
            4,
            9,
            5,
            "ScaleUpLimit",
            id="least-change",
        ),
        pytest.param(
            {"behavior": {"scaleUp": policies(("Pods", 1, 15), selectPolicy="Disabled")}},
            4,
            9,
            4,
            "ScaleUpLimit",
            id="disabled",
        ),
    ],
)
def test_limits(fields: Object, current: int, wanted: int, replicas: int, reason: str | None) -> None:
    """Bounds and policies limit a step, and the condition says which."""
    verdict = settle(spec(**fields), History(), current, wanted, 0)
    assert verdict.replicas == replicas
    assert verdict.limited[0] == (reason or "DesiredWithinRange")
    assert verdict.is_limited == (reason not in {None, "DesiredWithinRange"})


def test_stabilization() -> None:
    """It shrinks only after five minutes in which nothing asked for more."""
    history = History()
    history.begin(4, 0)
    assert settle(spec(), history, 4, 2, 15)[:2] == (
        4,
        (
            "ScaleDownStabilized",
            "recent recommendations were higher than current one, applying the highest recent recommendation",
        ),
    )
    settle(spec(), history, 4, 3, 30)
    assert settle(spec(), history, 4, 2, 300).replicas == 3
    assert settle(spec(), history, 3, 2, 331).replicas == 2


def test_window_upwards() -> None:
    """A window for growing takes the lowest recommendation of it."""
    window = {"behavior": {"scaleUp": policies(("Pods", 9, 15), stabilizationWindowSeconds=60)}}
    history = History()
    history.begin(2, 0)
    verdict = settle(spec(**window), history, 2, 5, 15)
    assert (verdict.replicas, verdict.able_to_scale[0]) == (2, "ScaleUpStabilized")
    assert settle(spec(**window), history, 2, 4, 61).replicas == 4


def test_policies_look_back() -> None:
    """What has been added within the period of a policy counts."""
    slow = spec(behavior={"scaleUp": policies(("Pods", 3, 60))})
    history = History()
    history.scaled(1, 3, 10)
    assert settle(slow, history, 3, 9, 30).replicas == 4
    assert settle(slow, history, 3, 9, 71).replicas == 6


def test_tolerance() -> None:
    """A direction may have a tolerance of its own."""
    tolerance = tolerance_of({"behavior": {"scaleUp": {"tolerance": "50m"}}})
    assert (str(tolerance.up), str(tolerance.down)) == ("0.050", "0.1")
