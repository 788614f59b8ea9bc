from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trainer_devcluster.apiserver.kinds.metric_validation import validate_metric

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def metric(kind: str, target: Object | None = None, **source: Any) -> Object:
    if target is not None:
        source["target"] = target
    return {"type": kind, kind[0].lower() + kind[1:]: source}


SHARE: Object = {"type": "Utilization", "averageUtilization": 50}
AVERAGE: Object = {"type": "AverageValue", "averageValue": "10"}
VALUE: Object = {"type": "Value", "value": "10"}
CHOICE = "must set either a target raw value or a target utilization"
TARGET = "m.resource.target"
KINDS = '"ContainerResource", "External", "Object", "Pods", "Resource"'
NAME: Object = {"name": "m"}


@pytest.mark.parametrize(
    "good",
    [
        metric("Resource", SHARE, name="cpu"),
        metric("Resource", AVERAGE, name="memory"),
        metric("ContainerResource", SHARE, name="cpu", container="node"),
        metric("Pods", AVERAGE, metric=NAME),
        metric("External", VALUE, metric=NAME),
        metric("Object", VALUE | AVERAGE, metric=NAME, describedObject={"kind": "K", "name": "n"}),
    ],
)
def test_good_metrics(good: Object) -> None:
    """Of the pods, of their containers, of something else in the cluster or outside of it."""
    assert validate_metric(good, "m") == []


@pytest.mark.parametrize(
    ("bad", "complaints"),
    [
        pytest.param({}, ["m.type: Required value: must specify a metric source type"], id="no type"),
        pytest.param(
            {"type": "Cpu"},
            [f'm.type: Unsupported value: "Cpu": supported values: {KINDS}'],
            id="unknown type",
        ),
        pytest.param(
            {"type": "Pods", "resource": {}},
            [
                "m.resource: Forbidden: must populate the given metric source only",
                "m.pods: Required value: must populate information for the given metric source",
            ],
            id="another source",
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
            metric("ContainerResource", SHARE, name="cpu"),
            ["m.containerResource.container: Required value: must specify a container"],
            id="no container",
        ),
        pytest.param(
            metric("Resource", SHARE | AVERAGE, name="cpu"),
            ["m.resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization"],
            id="two goals",
        ),
        pytest.param(
            metric("External", VALUE | AVERAGE, metric=NAME),
            ["m.external.target.value: Forbidden: may not set both a target value for metric and a per-pod target"],
            id="two external goals",
        ),
        pytest.param(
            metric("Pods", {"type": "Value", "value": "0"}, metric={}),
            [
                "m.pods.metric.name: Required value: must specify a metric name",
                'm.pods.target.value: Invalid value: "0": must be positive',
                "m.pods.target.averageValue: Required value: must specify a positive target averageValue",
            ],
            id="pods",
        ),
        pytest.param(
            metric("Resource", {"type": "Share", "averageUtilization": 0}, name="cpu"),
            [
                'm.resource.target.type: Invalid value: "Share": must be either Utilization, Value, or AverageValue',
                "m.resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
            ],
            id="target",
        ),
        pytest.param(
            metric("Object", metric=NAME, describedObject={"kind": "K"}),
            [
                "m.object.describedObject.name: Required value",
                "m.object.target.type: Required value: must specify a metric target type",
                "m.object.target.averageValue: Required value: must set either a target value or averageValue",
            ],
            id="no target",
        ),
    ],
)
def test_bad_metrics(bad: Object, complaints: list[str]) -> None:
    """In the words of Kubernetes."""
    assert [str(cause) for cause in validate_metric(bad, "m")] == complaints
