from __future__ import annotations

from datetime import UTC, datetime

import pytest

from trainer.kube.objects import Object
from trainer_devcluster.apiserver.tables.rows import autoscaler_cells

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def cells(metrics: list[Object], status: Object) -> list[object]:
    reference = {"apiVersion": "trainer.kubeflow.org/v2alpha1", "kind": "TrainJob", "name": "t"}
    spec = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 4, "metrics": metrics}
    metadata = {"name": "h", "creationTimestamp": "2026-11-21T11:58:00Z"}
    return autoscaler_cells({"metadata": metadata, "spec": spec, "status": status}, NOW)


def resource(name: str = "cpu", **target: object) -> Object:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def other(kind: str, **target: object) -> Object:
    field = kind[0].lower() + kind[1:]
    return {"type": kind, field: {"metric": {"name": "m"}, "target": target}}


def measured(kind: str, **current: object) -> Object:
    return {"type": kind, kind[0].lower() + kind[1:]: {"current": current}}


@pytest.mark.parametrize(
    ("metrics", "current", "text"),
    [
        pytest.param(
            [resource(averageUtilization=80)], [measured("Resource", averageUtilization=65)], "cpu: 65%/80%", id="share"
        ),
        pytest.param(
            [resource("memory", averageValue="2Gi")],
            [measured("Resource", averageValue="1Gi")],
            "memory: 1Gi/2Gi",
            id="amount",
        ),
    ],
)
def test_targets(metrics: list[Object], current: list[Object], text: str) -> None:
    """What is measured and what is wanted of the first two metrics."""
    assert cells(metrics, {"currentMetrics": current})[2] == text
