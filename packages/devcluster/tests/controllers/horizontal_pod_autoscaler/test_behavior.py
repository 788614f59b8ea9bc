"""How fast an autoscaler goes where its metrics point."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.kube.objects import Object
from trainer_devcluster.controllers.horizontal_pod_autoscaler.behavior import Recommendations, settle


def spec(**fields: Any) -> Object:
    """An autoscaler between 1 and 100 replicas."""
    return {"minReplicas": 1, "maxReplicas": 100} | fields


@pytest.mark.parametrize(
    ("fields", "current", "wanted", "replicas", "reason"),
    [
        pytest.param({}, 2, 2, 2, "DesiredWithinRange", id="as-it-is"),
        pytest.param({"maxReplicas": 3}, 2, 5, 3, "TooManyReplicas", id="up-to-the-most"),
    ],
)
def test_limits(fields: Object, current: int, wanted: int, replicas: int, reason: str | None) -> None:
    """Bounds and policies limit a step, and the condition says which."""
    verdict = settle(spec(**fields), Recommendations(), current, wanted, 0)
    assert verdict.replicas == replicas
    assert verdict.limited[0] == (reason or "DesiredWithinRange")
    assert verdict.is_limited == (reason not in {None, "DesiredWithinRange"})


def test_it_shrinks_to_the_least() -> None:
    """No policy limits how many replicas go at once; the lower bound does."""
    verdict = settle(spec(minReplicas=4), Recommendations(), 9, 1, 0)
    assert (verdict.replicas, verdict.limited[0], verdict.is_limited) == (4, "TooFewReplicas", True)


def test_stabilization() -> None:
    """It shrinks only after five minutes in which nothing asked for more."""
    history = Recommendations()
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
