"""OptimizationJobs and TrainJobs, as users and the manager write them."""

from __future__ import annotations

from typing import Any

import msgspec

from trainer.api.metric_curve import CURVE, MetricCurve, Point
from trainer.kube.objects import Object

LR: Object = {"name": "lr", "searchSpace": {"uniform": {"min": "0", "max": "1"}}}
OPTIMIZER: Object = {"name": "optimizer", "searchSpace": {"categorical": {"choices": ["sgd", "adam"]}}}


def sweep_object(
    name: str = "demo", *, version: str = "v2alpha1", metadata: Object | None = None, **spec: Any
) -> Object:
    """An OptimizationJob that minimizes `loss` by `lr` and `optimizer`."""
    base: Object = {
        "objectives": [{"metric": "loss"}],
        "searchAlgorithm": {"random": {"seed": 7}},
        "parameters": [LR, OPTIMIZER],
        "numTrials": 3,
        "parallelTrials": 2,
        "trainJobTemplate": {"spec": {"runtimeRef": {"name": "torch"}}},
    }
    return {
        "apiVersion": f"trainer.kubeflow.org/{version}",
        "kind": "OptimizationJob",
        "metadata": {"name": name, "namespace": "default"} | (metadata or {}),
        "spec": base | spec,
    }


def curve_text(*points: tuple[int, str], metric: str = "loss", is_final: bool = False) -> str:
    """The value of the annotation `CURVE`."""
    return MetricCurve(metric, tuple(Point(*point) for point in points), is_final).to_text()


def trial_object(
    *,
    number: int = 1,
    curve: str | None = None,
    annotations: Object | None = None,
    assignment: Object | None = None,
    end: str = "",
    ended: str = "2026-01-01T00:00:00Z",
    message: str = "",
    metrics: Object | None = None,
    sweep: str = "demo",
) -> Object:
    """The TrainJob of a trial, in the shape of the model; one of somebody else where no sweep controls it."""
    owners = [{"kind": "OptimizationJob", "name": sweep, "uid": "u", "controller": True}] if sweep else []
    values = [{"name": name, "value": value} for name, value in (assignment or {}).items()]
    found = {"trainer.kubeflow.org/optimization-parameters": msgspec.json.encode(values).decode()}
    status: Object = {}
    if end:
        condition = {"type": end, "status": "True", "reason": "R", "message": message, "lastTransitionTime": ended}
        status["conditions"] = [condition]
    if metrics is not None:
        status["trainerStatus"] = metrics
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": f"demo-trial-{number}",
            "namespace": "default",
            "creationTimestamp": "2025-12-31T23:00:00Z",
            "labels": {"trainer.kubeflow.org/optimization-trial": str(number)},
            **({"ownerReferences": owners} if owners else {}),
            "annotations": found | ({} if curve is None else {CURVE: curve}) | (annotations or {}),
        },
        "spec": {"runtimeRef": {"name": "torch"}},
        "status": status,
    }
