"""What shows on pods of a lost node."""

from __future__ import annotations

import pytest

from trainer.kube.objects import Object
from trainer.workloads.lost_nodes import node_lost_since

SINCE = "2026-01-01T00:00:00Z"


def pod(ready: str = "False", reason: str = "", containers: str = "True", phase: str = "Running") -> Object:
    """A pod with these conditions."""
    conditions = [
        {"type": "Ready", "status": ready, "lastTransitionTime": SINCE, **({"reason": reason} if reason else {})},
        {"type": "ContainersReady", "status": containers},
    ]
    return {"status": {"phase": phase, "conditions": conditions}}


@pytest.mark.parametrize(
    ("found", "since"),
    [
        pytest.param(pod(), SINCE, id="marked by the node lifecycle controller"),
        pytest.param(pod("True"), None, id="ready"),
        pytest.param(pod(reason="ContainersNotReady", containers="False"), None, id="container is not ready"),
        pytest.param(pod(reason="ReadinessGatesNotReady"), None, id="readiness gate"),
        pytest.param(pod(containers="False"), None, id="containers were not ready"),
        pytest.param(pod(phase="Failed"), None, id="ended"),
        pytest.param({}, None, id="no status"),
    ],
)
def test_node_lost_since(found: Object, since: str | None) -> None:
    """Only the node lifecycle controller says without a reason that a pod is not ready whose containers are."""
    assert node_lost_since(found) == since
