from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devcluster.tests.apiserver.kinds.context import created
from trainer_devcluster.apiserver.kinds.horizontal_pod_autoscaler import HorizontalPodAutoscalerStrategy

if TYPE_CHECKING:
    from trainer.kube.objects import Object

STRATEGY = HorizontalPodAutoscalerStrategy()


def make_autoscaler(**spec: Any) -> Object:
    target = {"apiVersion": "trainer.kubeflow.org/v2alpha1", "kind": "TrainJob", "name": "t"}
    return {"metadata": {"name": "t"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3, **spec}}


def test_defaults() -> None:
    """Without a word about it, 80 percent of the CPU are aimed at, by one replica at least."""
    autoscaler, causes = created(STRATEGY, make_autoscaler())
    assert causes == []
    assert autoscaler["spec"]["minReplicas"] == 1
    target = {"type": "Utilization", "averageUtilization": 80}
    assert autoscaler["spec"]["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    assert autoscaler["status"] == {}


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
            make_autoscaler(minReplicas=4),
            ["spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"],
            id="limits crossed",
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
            make_autoscaler(scaleTargetRef={"kind": "a/b", "name": "t"}),
            ["spec.scaleTargetRef.kind: Invalid value: \"a/b\": may not contain '/'"],
            id="kind",
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
