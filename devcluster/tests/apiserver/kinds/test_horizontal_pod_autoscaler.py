from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devcluster.tests.apiserver.kinds.context import created, updated
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
    assert "behavior" not in autoscaler["spec"]
    assert autoscaler["status"] == {}


def test_behavior_is_completed() -> None:
    """Who says something about one direction gets the defaults of the rest."""
    autoscaler, causes = created(STRATEGY, make_autoscaler(behavior={"scaleDown": {"selectPolicy": "Disabled"}}))
    assert causes == []
    percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
    pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
    assert autoscaler["spec"]["behavior"] == {
        "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, percent]},
        "scaleDown": {"selectPolicy": "Disabled", "policies": [percent]},
    }


def rule(**fields: Any) -> Object:
    policy = {"type": "Pods", "value": 1, "periodSeconds": 1}
    return make_autoscaler(behavior={"scaleUp": {"policies": [policy | fields.pop("policy", {})], **fields}})


UP = "spec.behavior.scaleUp"


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
            rule(selectPolicy="Any"),
            [f'{UP}.selectPolicy: Unsupported value: "Any": supported values: "Disabled", "Max", "Min"'],
            id="select policy",
        ),
        pytest.param(
            rule(stabilizationWindowSeconds=3601),
            [f"{UP}.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"],
            id="window",
        ),
        pytest.param(
            rule(stabilizationWindowSeconds=-1),
            [f"{UP}.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero"],
            id="negative window",
        ),
        pytest.param(
            rule(policy={"type": "All", "value": 0, "periodSeconds": 1801}),
            [
                f'{UP}.policies[0].type: Unsupported value: "All": supported values: "Percent", "Pods"',
                f"{UP}.policies[0].value: Invalid value: 0: must be greater than zero",
                f"{UP}.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
            ],
            id="policy",
        ),
    ],
)
def test_wrong_autoscalers_are_refused(autoscaler: Object, complaints: list[str]) -> None:
    """In the words of Kubernetes."""
    assert [str(cause) for cause in created(STRATEGY, autoscaler)[1]] == complaints


def test_status() -> None:
    """Whoever scales tells how many replicas there are; that number is checked."""
    old, _ = created(STRATEGY, make_autoscaler())
    new = {**old, "status": {"currentReplicas": -1, "desiredReplicas": 2}}
    [cause] = updated(STRATEGY, new, old, "status")
    assert str(cause) == "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0"
    assert updated(STRATEGY, {**old, "status": {"currentReplicas": 1, "desiredReplicas": 2}}, old, "status") == []
