from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.horizontal_pod_autoscaler import (
    HorizontalPodAutoscalerStrategy,
    validate_metric,
)

STRATEGY = HorizontalPodAutoscalerStrategy()


def make_autoscaler(**spec: Any) -> Object:
    target = {"apiVersion": "trainer.kubeflow.org/v2alpha1", "kind": "TrainJob", "name": "t"}
    return {"metadata": {"name": "t"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3, **spec}}


@pytest.mark.parametrize(
    ("autoscaler", "complaints"),
    [
        pytest.param(
            make_autoscaler(maxReplicas=0),
            [
                "spec.maxReplicas: Invalid value: 0: must be greater than 0",
                "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
            ],
            id="no replica",
        ),
        pytest.param(
            make_autoscaler(minReplicas=0),
            ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"],
            id="to zero",
        ),
        pytest.param(
            make_autoscaler(scaleTargetRef={}),
            ["spec.scaleTargetRef.kind: Required value", "spec.scaleTargetRef.name: Required value"],
            id="no target",
        ),
        pytest.param(
            make_autoscaler(metrics=[{}]),
            ["spec.metrics[0].type: Required value: must specify a metric source type"],
            id="metric",
        ),
        pytest.param(
            make_autoscaler(behavior={"scaleDown": {"selectPolicy": "Disabled"}}),
            ["spec.behavior: Forbidden: the dev cluster scales at the default pace: leave it out"],
            id="behavior",
        ),
    ],
)
def test_wrong_autoscalers_are_refused(autoscaler: Object, complaints: list[str]) -> None:
    """In the words of Kubernetes."""
    assert [str(cause) for cause in created(STRATEGY, autoscaler)[1]] == complaints


def metric(kind: str, target: Object | None = None, **source: Any) -> Object:
    if target is not None:
        source["target"] = target
    return {"type": kind, kind[0].lower() + kind[1:]: source}


SHARE: Object = {"type": "Utilization", "averageUtilization": 50}
AVERAGE: Object = {"type": "AverageValue", "averageValue": "10"}
CHOICE = "must set either a target raw value or a target utilization"
TARGET = "m.resource.target"
KINDS = '"ContainerResource", "External", "Object", "Pods", "Resource"'
NAME: Object = {"name": "m"}


@pytest.mark.parametrize(
    ("bad", "complaints"),
    [
        pytest.param(
            {"type": "Cpu"},
            [f'm.type: Unsupported value: "Cpu": supported values: {KINDS}'],
            id="unknown type",
        ),
        pytest.param(
            metric("External", AVERAGE, metric=NAME),
            ["m.type: Forbidden: the dev cluster has no metrics of type External: use Resource or Pods"],
            id="external",
        ),
        pytest.param(
            metric("Pods", {"type": "AverageValue", "averageValue": "0"}, metric={}),
            [
                "m.pods.metric.name: Required value: must specify a metric name",
                'm.pods.target.averageValue: Invalid value: "0": must be positive',
            ],
            id="pods",
        ),
        pytest.param(
            metric("Resource", {"averageUtilization": 0}, name="cpu"),
            ["m.resource.target.averageUtilization: Invalid value: 0: must be greater than 0"],
            id="target",
        ),
        pytest.param(
            metric("Resource", {"type": "Utilization"}),
            [
                "m.resource.name: Required value: must specify a resource name",
                f"{TARGET}.averageUtilization: Required value: {CHOICE}",
            ],
            id="empty resource",
        ),
        pytest.param(
            metric("Resource", SHARE | AVERAGE, name="cpu"),
            ["m.resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization"],
            id="two goals",
        ),
    ],
)
def test_bad_metrics(bad: Object, complaints: list[str]) -> None:
    """In the words of Kubernetes."""
    assert [str(cause) for cause in validate_metric(bad, "m")] == complaints
