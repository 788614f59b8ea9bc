"""PyTorchJobs and JAXJobs of `kubeflow.org/v1` on a cluster with the definitions and names of the released Trainer."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest
import yaml

from e2e.cluster import Cluster
from e2e.released_cluster import install, released_cluster
from e2e.v1_jobs import conditions, jax_job, pytorch_job, replica, wait_for
from e2e.waiting import until

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="needs a dev cluster of its own that serves v1 jobs"),
]

JOB_NAME = "training.kubeflow.org/job-name=demo"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A dev cluster whose manager serves v1 jobs."""
    with released_cluster(tmp_path_factory.mktemp("v1-released")) as cluster:
        install(cluster, serves_v1=True)
        yield cluster


@pytest.fixture
def cluster(released: Cluster) -> Iterator[Cluster]:
    """An empty namespace."""
    own = replace(released, namespace=f"v1-{uuid.uuid4().hex[:8]}")
    released.kubectl("create", "namespace", own.namespace)
    yield own
    released.kubectl("delete", "namespace", own.namespace, "--timeout=60s")


@pytest.mark.parametrize(
    ("job", "kind", "said"),
    [
        pytest.param(
            pytorch_job("demo", ["sh", "-c", "echo $WORLD_SIZE $RANK $MASTER_PORT $PET_NNODES"], workers=2),
            "pytorchjob",
            ["3", "0", "29500", "3"],
            id="PyTorchJob",
        ),
        pytest.param(
            jax_job("demo", ["sh", "-c", "echo $NUM_PROCESSES $PROCESS_ID $COORDINATOR_PORT"]),
            "jaxjob",
            ["2", "0", "29500"],
            id="JAXJob",
        ),
    ],
)
def test_from_submission_to_success(cluster: Cluster, job: dict[str, object], kind: str, said: list[str]) -> None:
    """The pods find the variables of the Training Operator, and the job its conditions; the TrainJob is of v1alpha1."""
    cluster.apply(job)
    wait_for(cluster, kind, "demo", "Succeeded")
    selector = f"{JOB_NAME},training.kubeflow.org/job-role=master"
    assert cluster.kubectl("logs", "-l", selector, "--tail=-1").stdout.split() == said
    assert conditions(cluster, kind, "demo")[0] == "Created"
    found = cluster.get("trainjob", "demo") or {}
    assert found["apiVersion"] == "trainer.kubeflow.org/v1alpha1"
    assert found["spec"]["runtimeRef"]["kind"] == "TrainingRuntime"


def active_workers(cluster: Cluster) -> int:
    """As the job counts them."""
    status = (cluster.get("pytorchjob", "demo") or {})["status"]
    found: int = status["replicaStatuses"]["Worker"]["active"]
    return found


def test_an_elastic_job(cluster: Cluster) -> None:
    """It trains in the size that it states; kubectl warns of it, an event names the field, and scaling is refused."""
    job = pytorch_job("demo", [])
    worker = replica("pytorch", ["sleep", "600"], 2)
    policy = {"minReplicas": 1, "maxReplicas": 3, "maxRestarts": 1}
    job["spec"] = {"elasticPolicy": policy, "pytorchReplicaSpecs": {"Worker": worker}}
    warnings = cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(job)).stderr
    assert "spec.elasticPolicy: has no counterpart" in warnings
    wait_for(cluster, "pytorchjob", "demo", "Running")
    until(lambda: active_workers(cluster) == 2, lambda: f"two workers run, and not {active_workers(cluster)}")
    refused = cluster.kubectl("scale", "pytorchjob/demo", "--replicas=3", check=False).stderr
    assert "TrainJobs of v1alpha1" in refused
    until(lambda: "FieldsWithoutEffect" in cluster.kubectl("get", "events").stdout, "an event names the field")
