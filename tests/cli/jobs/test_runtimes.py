"""`trainer runtimes`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.cli.app import app
from trainer.cli.errors import CommandError
from trainer.cli.jobs.find import list_runtimes
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_kube_testing import FakeClient


def runtime(resource: Resource, name: str, nodes: int | None = None, **labels: str) -> Object:
    """A runtime as a server returns it."""
    metadata = {"name": name, "labels": {f"trainer.kubeflow.org/{key}": value for key, value in labels.items()}}
    policy = {} if nodes is None else {"mlPolicy": {"numNodes": nodes}}
    where = {"namespace": "default"} if resource.namespaced else {}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata | where, "spec": policy}


@pytest.mark.usefixtures("cluster")
def test_runtimes(served: FakeClient) -> None:
    """Those of the cluster come first, then those of the namespace, with what tells them apart."""
    served.add(runtime(CLUSTER_TRAINING_RUNTIMES, "torch-v1", 2, framework="torch", support="deprecated"))
    served.add(runtime(CLUSTER_TRAINING_RUNTIMES, "plain"))
    served.add(runtime(TRAINING_RUNTIMES, "mine", 4, framework="jax"))
    elastic = runtime(TRAINING_RUNTIMES, "some", framework="torch")
    served.add(elastic | {"spec": {"mlPolicy": {"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 8}}}}})

    lines = CliRunner().invoke(app, "runtimes").stdout.splitlines()

    assert [line.split()[:-1] for line in lines] == [
        ["NAME", "KIND", "FRAMEWORK", "NODES", "SUPPORT"],
        ["plain", "ClusterTrainingRuntime", "1"],
        ["torch-v1", "ClusterTrainingRuntime", "torch", "2", "deprecated"],
        ["mine", "TrainingRuntime", "jax", "4"],
        ["some", "TrainingRuntime", "torch", "2"],
    ]
    answer = json.loads(CliRunner().invoke(app, "runtimes -o json -n other").stdout)
    assert [(each["name"], each["framework"], each["nodes"]) for each in answer] == [
        ("plain", "", 1),
        ("torch-v1", "torch", 2),
    ]


@pytest.mark.usefixtures("cluster")
def test_description(served: FakeClient) -> None:
    """What a runtime is for stands last; columns that say the same of all are left out."""
    plain = runtime(CLUSTER_TRAINING_RUNTIMES, "plain")
    plain["metadata"]["annotations"] = {"kubernetes.io/description": "Any program,\nwithout a framework."}
    served.add(plain)
    served.add(runtime(CLUSTER_TRAINING_RUNTIMES, "torch", 2))

    lines = CliRunner().invoke(app, "runtimes").stdout.splitlines()

    assert [line.split(maxsplit=3)[::3] for line in lines] == [
        ["NAME", "DESCRIPTION"],
        ["plain", "Any program, without a framework."],
        ["torch"],
    ]
    answer = json.loads(CliRunner().invoke(app, "runtimes -o json").stdout)
    assert [each["description"] for each in answer] == ["Any program, without a framework.", ""]


@pytest.mark.usefixtures("cluster")
def test_no_runtimes() -> None:
    """The note says how to get some."""
    result = CliRunner().invoke(app, "runtimes -n team")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("note: there are no runtimes for namespace team: ")


async def test_a_cluster_without_runtimes() -> None:
    """The error says what to install."""
    with pytest.raises(CommandError, match="install it"):
        await list_runtimes(FakeClient(), "default")
