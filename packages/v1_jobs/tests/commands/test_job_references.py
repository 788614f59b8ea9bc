"""`trainer convert` of jobs in a cluster."""

from __future__ import annotations

import pytest
import yaml
from typer.testing import CliRunner

from trainer.api.kubeflow_v1 import MPI_JOBS, MPI_JOBS_V2BETA1, PYTORCH_JOBS
from trainer.cli.app import app
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_kube_testing import FakeClient


def job(resource: Resource, field: str, role: str, container: str, namespace: str = "default") -> Object:
    """A job of one pod, as a server returns it."""
    template = {"spec": {"containers": [{"name": container, "image": "image:1"}]}}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "demo", "namespace": namespace, "uid": "u"},
        "spec": {field: {role: {"template": template}}},
    }


def pytorch_job(namespace: str = "default") -> Object:
    """A PyTorchJob."""
    return job(PYTORCH_JOBS, "pytorchReplicaSpecs", "Master", "pytorch", namespace)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "reference",
    [
        "pytorchjob/demo",
        "pytorchjobs/demo",
        "PyTorchJob/demo",
        "pytorchjobs.kubeflow.org/demo",
    ],
)
def test_names_of_kinds(served: FakeClient, reference: str) -> None:
    """A kind is named as kubectl takes it."""
    served.serve(PYTORCH_JOBS)
    served.add(pytorch_job())
    result = CliRunner().invoke(app, ["convert", reference])

    assert (result.exit_code, result.stderr) == (0, "")
    _, train_job = yaml.safe_load_all(result.stdout)
    assert train_job["metadata"] == {"name": "demo", "namespace": "default"}


@pytest.mark.usefixtures("cluster")
def test_namespaces(served: FakeClient) -> None:
    """The job is looked for in the namespace of the context, or in that of --namespace."""
    served.serve(PYTORCH_JOBS)
    served.add(pytorch_job("team"))
    missing = CliRunner().invoke(app, ["convert", "pytorchjob/demo"])
    found = CliRunner().invoke(app, ["convert", "pytorchjob/demo", "-n", "team", "--check"])

    assert (missing.exit_code, missing.stdout) == (1, "")
    assert missing.stderr == "error: there is no PyTorchJob demo in namespace default\n"
    assert (found.exit_code, found.stdout, found.stderr) == (0, "", "")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("resource", [MPI_JOBS, MPI_JOBS_V2BETA1])
def test_versions(served: FakeClient, resource: Resource) -> None:
    """An MPIJob is read in the version that the cluster serves."""
    served.serve(resource)
    served.add(job(resource, "mpiReplicaSpecs", "Launcher", "mpi"))
    result = CliRunner().invoke(app, ["convert", "mpijob/demo"])

    assert result.exit_code == 0, result.stderr
    assert "mpi" in result.stdout


@pytest.mark.usefixtures("cluster")
def test_kinds_that_are_not_served() -> None:
    """A cluster without the kind is distinguished from one without the job."""
    result = CliRunner().invoke(app, ["convert", "tfjob/demo"])

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: the cluster does not serve tfjobs.kubeflow.org: name the one that has the job\n"
