"""Pods as nodes of a JobSet."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.api.jobset_labels import COMPLETION_INDEX, JOB_INDEX, JOBSET_NAME, REPLICATED_JOB, RESTART_ATTEMPT
from trainer.api.jobset_pods import made_by_jobsets, place_of, recency_of
from trainer.kube.cache.cached_object import CachedObject


@pytest.mark.parametrize(
    ("labels", "annotations", "place"),
    [
        pytest.param({REPLICATED_JOB: "node", JOB_INDEX: "1", COMPLETION_INDEX: "12"}, {}, ("node", 1, 12), id="all"),
        pytest.param({}, {}, ("", 0, 0), id="none"),
        pytest.param({}, {COMPLETION_INDEX: "3"}, ("", 0, 3), id="before Kubernetes 1.28"),
        pytest.param({COMPLETION_INDEX: "first"}, {}, ("", 0, 0), id="written by somebody"),
        pytest.param({COMPLETION_INDEX: "9" * 5000}, {}, ("", 0, 0), id="longer than a label"),
    ],
)
def test_place(labels: dict[str, str], annotations: dict[str, str], place: tuple[str, int, int]) -> None:
    """Labels tell which node a pod is."""
    assert place_of({"metadata": {"labels": labels, "annotations": annotations}}) == place


def pod(name: str, *, attempt: int = 0, second: int = 0, phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    made = {"name": name, "creationTimestamp": f"2026-01-01T00:00:{second:02}Z"}
    return {
        "metadata": made | {"labels": {RESTART_ATTEMPT: str(attempt)}} | metadata,
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param(pod("b"), pod("a", second=1), id="made later"),
        pytest.param(pod("b", attempt=9), pod("a", attempt=10), id="restart of the JobSet within a second"),
        pytest.param(pod("b", phase="Failed"), pod("a"), id="one has ended"),
        pytest.param(pod("b", deletionTimestamp="2026-01-01T00:00:00Z"), pod("a"), id="one is being deleted"),
        pytest.param(pod("b"), pod("a", second=1, phase="Failed"), id="the later one has ended"),
        pytest.param(pod("a"), pod("b"), id="else by name"),
    ],
)
def test_recency(earlier: dict[str, Any], later: dict[str, Any]) -> None:
    """Of two pods of the same place the present one is known."""
    assert recency_of(earlier) < recency_of(later)


@pytest.mark.parametrize(
    ("owners", "jobsets"),
    [
        pytest.param(
            [{"kind": "Job", "name": "demo-node-0", "uid": "j", "controller": True}], ("ns/demo",), id="its-job"
        ),
        pytest.param([{"kind": "Job", "name": "demo-node-0", "uid": "j"}], (), id="no-controller"),
        pytest.param([{"kind": "Job", "name": "other-node-0", "uid": "j", "controller": True}], (), id="another-job"),
        pytest.param([], (), id="nobody"),
    ],
)
def test_index(owners: list[dict[str, Any]], jobsets: tuple[str, ...]) -> None:
    """A pod is found by its JobSet if one of the Jobs has made it, since anybody may give a pod such labels."""
    labels = {JOBSET_NAME: "demo", REPLICATED_JOB: "node", JOB_INDEX: "0"}
    metadata = {"name": "p", "namespace": "ns", "labels": labels, "ownerReferences": owners}
    assert made_by_jobsets(CachedObject.of({"metadata": metadata})) == jobsets
