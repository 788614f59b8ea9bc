"""How often a JobSet has started all Jobs again, by cause."""

from __future__ import annotations

import pytest

from trainer.kube.objects import Object
from trainer.workloads.restarts import Restarts

IGNORING: Object = {"rules": [{"action": "RestartJobSetAndIgnoreMaxRestarts"}]}


@pytest.mark.parametrize(
    ("policy", "status", "expected"),
    [
        pytest.param(IGNORING, {}, "", id="never"),
        pytest.param(IGNORING, {"restarts": 1}, "1 disruption", id="disrupted"),
        pytest.param(
            IGNORING | {"maxRestarts": 3}, {"restarts": 2}, "2 disruptions, no failure of 3", id="no failure yet"
        ),
        pytest.param(
            IGNORING | {"maxRestarts": 3},
            {"restarts": 3, "restartsCountTowardsMax": 1},
            "2 disruptions, 1 failure of 3",
            id="both",
        ),
        pytest.param(
            {"maxRestarts": 3}, {"restarts": 2, "restartsCountTowardsMax": 2}, "2 failures of 3", id="failures alone"
        ),
        pytest.param({"maxRestarts": 3}, {"restarts": 2}, "2 failures of 3", id="a JobSet that counts nothing else"),
        pytest.param(None, {"restarts": "2"}, "", id="nonsense"),
    ],
)
def test_causes(policy: Object | None, status: Object, expected: str) -> None:
    """Restarts that the failure policy does not count are disruptions."""
    restarts = Restarts.of_jobset({"spec": {"failurePolicy": policy}, "status": status})
    assert (str(restarts), bool(restarts)) == (expected, bool(expected))
    shown = {"disruptions": restarts.disruptions, "failures": restarts.failures, "maxRestarts": restarts.limit}
    assert Restarts.of_status(shown) == restarts
