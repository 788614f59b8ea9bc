"""The HorizontalPodAutoscaler of an elastic torch training."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from trainer.framework.building.extraction import extract
from trainer.framework.plugin_api.component import Component
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS
from trainer.plugins.torch.elastic import LABEL
from trainer.plugins.torch.plugin import Torch

METRICS = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
]
POLICY = {"minNodes": 5, "maxNodes": 10, "maxRestarts": 3}
NODES = {"trainer": {"numNodes": 6}}


def built(spec: Any, policy: Any) -> list[Component]:
    """What the plugin builds."""
    job = train_job(**spec)
    info = extract(job, runtime(policy=policy))
    Torch().enforce_ml_policy(info, job)
    return list(Torch().build(info, job))


def test_autoscaler() -> None:
    """It scales the TrainJob between the bounds of the policy by its metrics, and goes when the training has ended."""
    (component,) = built(NODES, {"torch": {"elasticPolicy": POLICY | {"metrics": METRICS}}})
    assert component.object == {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "demo", "namespace": "default", "labels": {LABEL: "demo"}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "trainer.kubeflow.org/v2alpha1", "kind": "TrainJob", "name": "demo"},
            "minReplicas": 5,
            "maxReplicas": 10,
            "metrics": METRICS,
        },
    }
    assert component.delete_when_finished


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        pytest.param(NODES, {"torch": {"elasticPolicy": POLICY}}, id="no-metrics"),
        pytest.param(
            NODES | {"suspend": True}, {"torch": {"elasticPolicy": POLICY | {"metrics": METRICS}}}, id="suspended"
        ),
        pytest.param({}, {"numNodes": 2, "torch": {}}, id="fixed"),
        pytest.param({}, {}, id="no-framework"),
    ],
)
def test_no_autoscaler(spec: Any, policy: Any) -> None:
    """Without metrics nobody scales; a TrainJob that is suspended has no nodes to measure."""
    assert built(spec, policy) == []


def test_a_runtime_without_a_trainer() -> None:
    """A runtime of no framework may have nothing that trains; that is none of our business."""
    job = train_job()
    info = extract(job, runtime(replicated_job("loader")))
    assert list(Torch().build(info, job)) == []


def test_only_our_autoscalers_are_cached() -> None:
    """The watch covers what is built and nothing else, and a change makes the TrainJob be looked at."""
    (watch,) = Torch().watches()
    assert watch.resource == HORIZONTAL_POD_AUTOSCALERS
    assert watch.selection.label_selector == LABEL
    assert watch.triggers


@pytest.mark.parametrize("spec", [pytest.param(NODES, id="stated"), pytest.param({}, id="least")])
def test_validation(spec: Any) -> None:
    """An autoscaler needs no number of nodes of the TrainJob: the training starts with the least."""
    job = train_job(**spec)
    info = extract(job, runtime(policy={"torch": {"elasticPolicy": POLICY | {"metrics": METRICS}}}))
    assert [*Torch().validate(info, None, job)] == []
