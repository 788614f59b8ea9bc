"""What a new TrainJob begins with."""

from __future__ import annotations

import pytest
import yaml

from packages.dashboard.tests.conftest import UserClient, train_job, visiting
from trainer.api.metric_curve import CURVE


async def test_copy(client: UserClient) -> None:
    """A copy has what its author wrote, and nothing that the system has added."""
    spec = {
        "suspend": True,
        "managedBy": "kubeflow.org/trainjob-controller",
        "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "plain"},
        "trainer": {"numNodes": 3},
        "podSpecOverrides": [
            {"targetJobs": [{"name": "node"}], "nodeSelector": {"a": "b"}},
            {"targetJobs": [{"name": "node"}], "manager": "kueue.x-k8s.io/manager", "nodeSelector": {"c": "d"}},
        ],
    }
    job = train_job("demo-9", spec=spec, state="Running")
    job["metadata"] |= {
        "labels": {"kueue.x-k8s.io/queue-name": "team"},
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "trainer.kubeflow.org/status-extension-of-trainer": "{}",
            CURVE: '{"metric": "loss", "isFinal": true}',
            "note": "kept",
        },
        "finalizers": ["kueue.x-k8s.io/resource-in-use"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y"}],
        "managedFields": [{"manager": "kubectl"}],
    }
    client.add(job)
    async with visiting(client) as visitor:
        _, content = await visitor.json("/api/trainjobs/default/demo-9/copy")
    assert yaml.safe_load(content["yaml"]) == {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": "demo-10",
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": "team"},
            "annotations": {"note": "kept"},
        },
        "spec": {
            "runtimeRef": {"name": "plain"},
            "trainer": {"numNodes": 3},
            "podSpecOverrides": [{"targetJobs": [{"name": "node"}], "nodeSelector": {"a": "b"}}],
        },
    }


@pytest.mark.parametrize(
    ("name", "copy"),
    [
        pytest.param("a", "a-2", id="first"),
        pytest.param("a-2", "a-3", id="next"),
        pytest.param("a-09", "a-10", id="with-zeros"),
        pytest.param("a-b", "a-b-2", id="no-number"),
        pytest.param("9", "9-2", id="only-a-number"),
        pytest.param("x" * 63, "x" * 61 + "-2", id="longest"),
        pytest.param("taken", "taken-4", id="others-have-the-next-ones"),
    ],
)
async def test_names(client: UserClient, name: str, copy: str) -> None:
    """A copy has the next name that is free, which is no longer than a name may be."""
    client.add(train_job(name))
    client.add(train_job("taken-2"))
    client.add(train_job("taken-3"))
    async with visiting(client) as visitor:
        _, content = await visitor.json(f"/api/trainjobs/default/{name}/copy")
    assert yaml.safe_load(content["yaml"])["metadata"]["name"] == copy


@pytest.mark.parametrize(
    ("query", "namespace", "name"),
    [
        pytest.param("", "default", "training-2", id="at-home"),
        pytest.param("?namespace=team", "team", "training-1", id="where-it-is-wanted"),
        pytest.param("?namespace=..%2Fteam", "default", "training-2", id="no-namespace"),
        pytest.param("?namespace=%E2%80%AEteam", "default", "training-2", id="hidden-letters"),
    ],
)
async def test_empty(client: UserClient, query: str, namespace: str, name: str) -> None:
    """An empty one has a name that is free, and no field that its user would have to choose."""
    client.add(train_job("training-1"))
    async with visiting(client) as visitor:
        _, content = await visitor.json(f"/api/draft{query}")
    assert yaml.safe_load(content["yaml"]) == {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runtimeRef": {"name": ""}},
    }
