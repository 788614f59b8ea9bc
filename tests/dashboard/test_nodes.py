"""What is shown of pods and events."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dashboard.conftest import node_pod, train_job
from trainer.dashboard.nodes import EVENTS_SHOWN, events_of, nodes_of


def event(name: str, **fields: Any) -> dict[str, Any]:
    shape = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{name}.1", "namespace": "default"}}
    return shape | {"involvedObject": {"kind": "Pod", "name": name}, "lastTimestamp": "2026-01-01T00:00:05Z"} | fields


@pytest.mark.parametrize(
    ("involved", "is_shown"),
    [
        pytest.param("demo", True, id="itself"),
        pytest.param("demo-node-0-1-x7k2p", True, id="pod"),
        pytest.param("demo-2", False, id="another-train-job"),
        pytest.param("demo-2-node-0", False, id="job-of-another"),
        pytest.param("demo-3-node-0", True, id="no-such-train-job"),
    ],
)
def test_owner(involved: str, is_shown: bool) -> None:
    """An event belongs to the TrainJob whose name fits best."""
    shown = events_of(train_job(), [event(involved)], {"demo", "demo-2"})
    assert bool(shown) is is_shown


def test_times() -> None:
    """Events of an earlier TrainJob of the same name are left out, and the newest come first, whatever their API."""
    events = [
        event("demo", lastTimestamp="2025-12-31T23:59:59Z"),
        event("demo", lastTimestamp=None, eventTime="2026-01-01T00:00:00.5Z", reason="b"),
        event("demo", lastTimestamp=None, series={"lastObservedTime": "2026-01-01T00:00:09.5Z"}, reason="c"),
        event("demo", lastTimestamp="2026-01-01T00:00:00Z", reason="a"),
    ]
    shown = events_of(train_job(), events, {"demo"})
    assert shown[0]["reason"] == "c"
    assert sorted(each["reason"] for each in shown) == ["a", "b", "c"]
    assert len(events_of(train_job(), [event("demo")] * 500, {"demo"})) == EVENTS_SHOWN


def test_nodes() -> None:
    """Nodes are in their order, each with what it requests and why it does not run."""
    waiting = [{"name": "node", "restartCount": 2, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    pods = [node_pod("demo", 10), node_pod("demo", 2, phase="Pending", containerStatuses=waiting)]
    beside = {"name": "sidecar", "resources": {"requests": {"cpu": "500m"}}}
    pods[1]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 8}, "requests": {"cpu": "2"}}
    pods[1]["spec"]["containers"].append(beside)
    first, second = nodes_of(pods)
    assert (first["node"], first["reason"], first["restarts"]) == ("node-2", "ImagePullBackOff", 2)
    assert first["requests"] == {"nvidia.com/gpu": "8", "cpu": "2500m"}
    assert (second["node"], second["phase"], second["logs"]) == ("node-10", "Running", ["node"])


def test_unschedulable() -> None:
    """A pod that no node takes says so."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    (node,) = nodes_of([node_pod("demo", phase="Pending", containerStatuses=[], conditions=[condition])])
    assert (node["reason"], node["logs"]) == ("Unschedulable", [])
