"""What a list says of a runtime."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.framework.building.runtime_summary import RuntimeSummary

STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def job(name: str, *containers: dict[str, Any], step: str = "", pod_step: str = "") -> dict[str, Any]:
    """A replicated Job."""
    template: dict[str, Any] = {"spec": {"containers": [*containers]}}
    if pod_step:
        template["metadata"] = {"labels": {STEP: pod_step}}
    labels = {"metadata": {"labels": {STEP: step}}} if step else {}
    return {"name": name, "template": labels | {"spec": {"template": template}}}


def container(image: str, name: str = "node", **amounts: Any) -> dict[str, Any]:
    return {"name": name, "image": image, "resources": {"limits": amounts}}


def summary(*jobs: Any, **policy: Any) -> RuntimeSummary:
    spec = {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": [*jobs]}}}
    return RuntimeSummary.of({"metadata": {"name": "r"}, "spec": spec}, "ClusterTrainingRuntime")


GPU = {"nvidia.com/gpu": "4"}


@pytest.mark.parametrize(
    ("jobs", "policy", "image", "devices"),
    [
        pytest.param([job("node", container("a", **GPU))], {}, "a", 4, id="by-name"),
        pytest.param([job("node", container("a")), job("x", container("b"), step="trainer")], {}, "b", 0, id="label"),
        pytest.param([job("x", container("b"), pod_step="trainer")], {}, "b", 0, id="label-of-the-pod"),
        pytest.param(["nonsense", {}], {}, "", 0, id="malformed"),
    ],
)
def test_training_container(jobs: list[Any], policy: dict[str, Any], image: str, devices: int) -> None:
    """Image and devices are those of the container that trains."""
    found = summary(*jobs, **policy)
    assert (found.image, found.devices) == (image, devices)


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        pytest.param({}, 1, id="default"),
        pytest.param({"numNodes": 3}, 3, id="stated"),
        pytest.param({"torch": {"elasticPolicy": {"maxNodes": 8}}}, 8, id="elastic-with-one-bound"),
        pytest.param({"numNodes": "many"}, 1, id="malformed"),
    ],
)
def test_nodes(policy: dict[str, Any], nodes: int) -> None:
    """The nodes are those that a TrainJob gets which says nothing."""
    assert summary(**policy).nodes == nodes


def test_nodes_of_the_template() -> None:
    """A runtime may say how many nodes there are in the template of their Job alone."""
    node = job("node", container("a"))
    node["template"]["spec"]["parallelism"] = 4
    assert summary(node).nodes == 4
