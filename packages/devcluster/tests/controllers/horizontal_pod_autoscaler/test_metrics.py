"""What metrics are at present, and how many replicas they ask for."""

from __future__ import annotations

import pytest

from trainer.kube.objects import Object
from trainer_devcluster.controllers.horizontal_pod_autoscaler.metrics import PREFIX, MetricFailure, Situation, propose


def pod(name: str, phase: str = "Running", metric: str = "", **requests: str) -> Object:
    """A pod, with what it says of the metric `cpu`."""
    annotations = {f"{PREFIX}cpu": metric} if metric else {}
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
    return {
        "metadata": {"name": name, "namespace": "ns", "annotations": annotations},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]},
        "status": {"phase": phase, "conditions": [ready]},
    }


def situation(pods: list[Object], current: int | None = None, **metrics: str) -> Situation:
    """What an autoscaler with annotations for these metrics sees."""
    annotations = {f"{PREFIX}{name}": value for name, value in metrics.items()}
    autoscaler = {"metadata": {"name": "hpa", "namespace": "ns", "annotations": annotations}}
    return Situation(autoscaler, pods, len(pods) if current is None else current)


def utilization(percent: int) -> Object:
    """A target for the utilization of CPUs."""
    return {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": percent}}}


CPU_AMOUNT: dict[str, object] = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageValue": "500m"}}}
PODS: dict[str, object] = {"type": "Pods", "pods": {"metric": {"name": "queue"}, "target": {"averageValue": "10"}}}


def two(metric: str = "") -> list[Object]:
    """Two pods that run."""
    return [pod("a", metric=metric, cpu="1"), pod("b", metric=metric, cpu="1")]


@pytest.mark.parametrize(
    ("metric", "seen", "replicas", "current"),
    [
        pytest.param(utilization(50), situation(two("750m")), 3, {"averageUtilization": 75}, id="amount-of-request"),
        pytest.param(CPU_AMOUNT, situation(two(), cpu="1"), 4, {"averageValue": "1"}, id="amount"),
    ],
)
def test_replicas(metric: Object, seen: Situation, replicas: int, current: Object) -> None:
    """The number of replicas follows from the ratio of metric and target; status shows the metric."""
    proposal = propose(metric, seen)
    kind = str(metric["type"])
    shown = proposal.status[kind[:1].lower() + kind[1:]]["current"]
    assert proposal.replicas == replicas
    assert {name: shown[name] for name in current} == current
    assert proposal.status["type"] == kind


def test_pods_that_are_not_up() -> None:
    """Pods that start do not multiply."""
    pods = [*two(), pod("c", "Pending", cpu="1"), pod("d", "Pending", cpu="1")]
    assert propose(utilization(50), situation(pods, cpu="90%")).replicas == 4


def test_pods_without_the_metric() -> None:
    """Pods of which nothing is known never turn a change round."""
    pods = [*two("60m"), pod("c", cpu="100m"), pod("d", cpu="100m")]
    for each in pods[:2]:
        each["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100m"
    assert propose(utilization(50), situation(pods)).replicas == 4


def test_close_to_the_target() -> None:
    """A metric that misses its target by a tenth changes nothing."""
    assert propose(utilization(50), situation(two("540m"))).replicas == 2


@pytest.mark.parametrize(
    ("metric", "seen", "reason", "message"),
    [
        pytest.param(PODS, situation(two(), queue="x"), "FailedGetPodsMetric", "must be a quantity", id="nonsense"),
        pytest.param(PODS, situation(two(), queue="5%"), "FailedGetPodsMetric", "is a percentage", id="percentage"),
        pytest.param(
            utilization(50),
            situation([pod("a", metric="1")]),
            "FailedGetResourceMetric",
            "failed to get cpu utilization: missing request for cpu in container c of Pod a",
            id="no-request",
        ),
    ],
)
def test_failures(metric: Object, seen: Situation, reason: str, message: str) -> None:
    """What is lacking is reported with the reason of Kubernetes and the annotation that would help."""
    with pytest.raises(MetricFailure) as caught:
        propose(metric, seen)
    assert caught.value.reason == reason
    assert message in str(caught.value)
