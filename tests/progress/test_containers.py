"""Pods as training nodes."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.api.jobset_pods import node_name
from trainer.kube.objects import Object
from trainer.progress.containers import (
    ResultSource,
    result_source_of,
    started_containers,
)

JOBSET = "jobset.sigs.k8s.io/"
INDEX = "batch.kubernetes.io/job-completion-index"
JOB = f"{JOBSET}replicatedjob-name"


def pod(labels: dict[str, str] | None = None, **status: Any) -> Object:
    return {
        "metadata": {"name": "demo-node-0-1-x7k2p", "namespace": "default", "uid": "u1", "labels": labels or {}},
        "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "trainer"}]},
        "status": status,
    }


@pytest.mark.parametrize(
    ("labels", "name", "source"),
    [
        pytest.param({JOB: "node", INDEX: "0"}, "node-0", ResultSource.FIRST_NODE, id="node 0"),
        pytest.param({JOB: "launcher", INDEX: "0"}, "launcher-0", ResultSource.LAUNCHER, id="MPI"),
        pytest.param(
            {JOB: "dataset-initializer", INDEX: "0"},
            "dataset-initializer-0",
            ResultSource.NONE,
            id="not the trainer",
        ),
        pytest.param({}, "demo-node-0-1-x7k2p", ResultSource.NONE, id="not of a JobSet"),
    ],
)
def test_node_name(labels: dict[str, str], name: str, source: ResultSource) -> None:
    """A node is called by replicated job and index, whatever random suffix its pod has."""
    assert node_name(pod(labels)) == name
    training_job = "trainer-node" if labels.get(JOB) == "trainer-node" else "node"
    assert result_source_of(pod(labels), training_job) is source


def test_the_nodes_are_those_of_the_job_that_trains() -> None:
    """Whatever its name; another one called node says nothing then."""
    assert result_source_of(pod({JOB: "worker", INDEX: "0"}), "worker") is ResultSource.FIRST_NODE
    assert result_source_of(pod({JOB: "node", INDEX: "0"}), "worker") is ResultSource.NONE


@pytest.mark.parametrize(
    ("status", "started"),
    [
        pytest.param({"state": {"waiting": {"reason": "ContainerCreating"}}, "restartCount": 0}, False, id="waiting"),
        pytest.param({"state": {"running": {}}, "restartCount": 0}, True, id="running"),
        pytest.param({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 2}, True, id="restarting"),
    ],
)
def test_started_containers(status: dict[str, Any], started: bool) -> None:
    """A container has a log once it has started."""
    containers = list(started_containers(pod(containerStatuses=[{"name": "trainer", **status}])))

    assert [container.container for container in containers] == (["trainer"] if started else [])


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        pytest.param("fetch", ["node-0/fetch", "node-0/trainer"], id="several"),
        pytest.param("trainer-reporter", ["node-0/trainer-reporter", "node-0"], id="reporter"),
    ],
)
def test_containers_of_a_pod_with_several_are_reported_apart(name: str, sources: list[str]) -> None:
    """With several containers in a pod, init containers included, the container's name is part of the source.

    That which puts the reporter beside a training changes nothing for the training.
    """
    several = pod(
        {JOB: "node", INDEX: "0"},
        initContainerStatuses=[{"name": name, "state": {"terminated": {"exitCode": 0}}}],
        containerStatuses=[{"name": "trainer", "state": {"running": {}}}],
    )
    several["spec"]["initContainers"] = [{"name": name}]

    assert [container.source for container in started_containers(several)] == sources
