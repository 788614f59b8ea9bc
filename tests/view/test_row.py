"""A TrainJob in a row."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.view.row import TrainJobRow

TIME = "2026-01-01T00:10:00Z"


def condition(kind: str, status: str = "True", message: str = "first\nsecond") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": "Why", "message": message, "lastTransitionTime": TIME}


@pytest.mark.parametrize(
    ("status", "state", "reason", "message"),
    [
        pytest.param({}, "Submitted", "", "", id="untouched"),
        pytest.param(
            {"state": "Pending", "conditions": [condition("Pending")]}, "Pending", "Why", "first", id="pending"
        ),
        pytest.param(
            {"state": "Running", "conditions": [condition("Pending", "False")]},
            "Running",
            "",
            "",
            id="no-longer-pending",
        ),
        pytest.param(
            {"state": "Blocked", "conditions": [condition("Created", "False")]}, "Blocked", "Why", "first", id="blocked"
        ),
        pytest.param(
            {"conditions": [condition("Created", "False")]}, "Submitted", "Why", "first", id="blocked-without-a-state"
        ),
        pytest.param(
            {"state": "Running", "conditions": [condition("Failed"), condition("Created", "False")]},
            "Failed",
            "Why",
            "first",
            id="failed-before-the-state-says-so",
        ),
        pytest.param({"trainerStatus": "nonsense", "conditions": None}, "Submitted", "", "", id="malformed"),
    ],
)
def test_state(status: dict[str, Any], state: str, reason: str, message: str) -> None:
    """The conditions decide how it ended; that of its state explains it, else the one that says why it has no Jobs."""
    row = TrainJobRow.of({"status": status})
    assert (row.state, row.reason, row.message) == (state, reason, message)


def test_times() -> None:
    """A TrainJob has an end once it has ended."""
    job = {"metadata": {"creationTimestamp": "c"}, "status": {"startTime": "s", "conditions": [condition("Complete")]}}
    row = TrainJobRow.of(job)
    assert (row.created, row.started, row.ended, row.has_ended) == ("c", "s", TIME, True)
    row = TrainJobRow.of({"status": {"state": "Stalled", "conditions": [condition("Stalled")]}})
    assert (row.created, row.started, row.ended, row.has_ended) == (None, None, None, False)


@pytest.mark.parametrize(
    ("spec", "status", "nodes"),
    [
        pytest.param({}, {}, None, id="as-the-runtime-says"),
        pytest.param({"trainer": {"numNodes": 2}}, {}, 2, id="stated"),
        pytest.param({"trainer": {"numNodes": 2}}, {"scale": {"nodes": 5}}, 5, id="elastic"),
        pytest.param({"trainer": {"numNodes": "2"}}, {}, None, id="malformed"),
    ],
)
def test_nodes(spec: dict[str, Any], status: dict[str, Any], nodes: int | None) -> None:
    """Of an elastic training the present nodes count."""
    assert TrainJobRow.of({"spec": spec, "status": status}).nodes == nodes


@pytest.mark.parametrize(
    ("resources", "devices"),
    [
        pytest.param({}, None, id="as-the-runtime-says"),
        pytest.param({"limits": {"cpu": "4"}}, None, id="no-devices-of-its-own"),
        pytest.param({"limits": {"nvidia.com/gpu": "8"}}, 8, id="limits"),
        pytest.param({"requests": {"nvidia.com/gpu": 2}}, 2, id="requests"),
        pytest.param({"limits": {"nvidia.com/gpu": 0}}, 0, id="none"),
        pytest.param({"limits": {"nvidia.com/gpu": "9Ei"}}, None, id="no-number-of-devices"),
    ],
)
def test_devices(resources: dict[str, Any], devices: int | None) -> None:
    """The GPUs of a TrainJob are known where it states them itself."""
    assert TrainJobRow.of({"spec": {"trainer": {"resourcesPerNode": resources}}}).devices_per_node == devices


@pytest.mark.parametrize(
    ("metadata", "owner"),
    [
        pytest.param({}, "", id="nobody"),
        pytest.param(
            {"ownerReferences": [{"kind": "A", "name": "a"}, {"kind": "Experiment", "name": "e", "controller": True}]},
            "Experiment e",
            id="controller",
        ),
        pytest.param({"ownerReferences": [{"kind": "Workflow", "name": "w"}]}, "Workflow w", id="owner"),
        pytest.param({"labels": {"app.kubernetes.io/created-by": "<b>me</b>"}}, "<b>me</b>", id="label"),
        pytest.param({"annotations": {"app.kubernetes.io/created-by": "me"}}, "me", id="annotation"),
    ],
)
def test_owner(metadata: dict[str, Any], owner: str) -> None:
    """The owner is what has made the TrainJob, or whom it names."""
    assert TrainJobRow.of({"metadata": metadata}).owner == owner
