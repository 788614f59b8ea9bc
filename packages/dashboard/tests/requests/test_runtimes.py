"""The runtimes on their page."""

from __future__ import annotations

import pytest

from packages.dashboard.tests.conftest import UserClient, visiting
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.v1alpha1.client import SERVED
from trainer.v1alpha1.discovery import Served

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def client() -> UserClient:
    return UserClient(resources=(*SERVED, *SERVED.values()))


def runtime(resource: Resource, name: str, namespace: str = "", **labels: str) -> Object:
    """A runtime whose nodes have GPUs."""
    container = {"name": "node", "image": "torch:2", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    pod = {"template": {"spec": {"containers": [container]}}}
    jobs = [{"name": "node", "template": {"spec": pod}}]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "labels": {f"trainer.kubeflow.org/{key}": value for key, value in labels.items()},
            "managedFields": [{"manager": "kubectl"}],
        }
        | ({"namespace": namespace} if namespace else {}),
        "spec": {"mlPolicy": {"numNodes": 2}, "template": {"spec": {"replicatedJobs": jobs}}},
    }


async def test_runtimes(client: UserClient) -> None:
    """Those of the cluster come first, then those of all namespaces, with what their TrainJobs get."""
    described = runtime(CLUSTER_TRAINING_RUNTIMES, "torch", framework=HOSTILE, support="deprecated")
    described["metadata"]["annotations"] = {"kubernetes.io/description": HOSTILE * 100}
    client.add(described)
    client.add(runtime(TRAINING_RUNTIMES, "own", "team"))
    async with visiting(client) as visitor:
        _, answer = await visitor.json("/api/runtimes")
    first, second = answer["runtimes"]
    assert answer["problems"] == []
    assert (first["name"], first["namespace"], first["framework"], first["support"]) == (
        "torch",
        "",
        HOSTILE,
        "deprecated",
    )
    assert first["description"] == (HOSTILE * 100)[:300]
    assert (first["nodes"], first["devices"], first["image"]) == (2, 8, "torch:2")
    assert (second["name"], second["namespace"], second["kind"]) == ("own", "team", "TrainingRuntime")


async def test_one_namespace(client: UserClient) -> None:
    """Where one namespace is shown, its runtimes and those of the cluster are."""
    client.add(runtime(CLUSTER_TRAINING_RUNTIMES, "torch"))
    client.add(runtime(TRAINING_RUNTIMES, "own", "team"))
    client.add(runtime(TRAINING_RUNTIMES, "other", "vision"))
    async with visiting(client, namespace="team") as visitor:
        _, answer = await visitor.json("/api/runtimes")
    assert [each["name"] for each in answer["runtimes"]] == ["torch", "own"]


async def test_no_rights(client: UserClient) -> None:
    """Runtimes that may not be listed are named, and the others shown."""
    client.add(runtime(TRAINING_RUNTIMES, "own", "team"))
    forbidden = ForbiddenError(403, "clustertrainingruntimes is forbidden")
    client.faults.fail(forbidden, verb="list", resource=CLUSTER_TRAINING_RUNTIMES)
    async with visiting(client) as visitor:
        _, answer = await visitor.json("/api/runtimes")
    assert [each["name"] for each in answer["runtimes"]] == ["own"]
    assert answer["problems"] == ["clustertrainingruntimes cannot be listed: clustertrainingruntimes is forbidden"]


@pytest.mark.parametrize(
    ("path", "resource", "namespace"),
    [
        pytest.param("/api/clusterruntimes/torch/yaml", CLUSTER_TRAINING_RUNTIMES, "", id="of-the-cluster"),
        pytest.param("/api/runtimes/team/torch/yaml", TRAINING_RUNTIMES, "team", id="of-a-namespace"),
    ],
)
@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
async def test_yaml(client: UserClient, path: str, resource: Resource, namespace: str, version: str) -> None:
    """The YAML of a runtime is as it is stored, without the field managers."""
    served = Served(version)  # type: ignore[arg-type]
    stored = runtime(served.resource(resource), "torch", namespace)
    client.add(stored)
    async with visiting(client, served) as visitor:
        _, content = await visitor.json(path)
        assert f"apiVersion: trainer.kubeflow.org/{version}\n" in content["yaml"]
        assert "managedFields" not in content["yaml"]
        assert (await visitor.json(path.replace("torch", "other")))[0] == 404
        assert (await visitor.json(path.replace("torch", "UPPER")))[0] == 404
