"""What the plugins do for TrainJobs of v1alpha1, where Kubeflow Trainer (Go) does it otherwise than KEP-2170."""

from __future__ import annotations

from typing import Any

import pytest

from tests.webhooks.nets import pipeline
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TrainJob
from trainer.framework.runtimes.runtimes import read_runtime
from trainer.kube.objects import Object
from trainer.v1alpha1.client import decoded

LABELS = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
PODS = {"containers": [{"name": "node", "image": "i", "command": ["python"]}]}
JOB = {"name": "node", "template": {"metadata": LABELS, "spec": {"template": {"spec": PODS}}}}


def container(policy: str, **spec: Any) -> Object:
    """The container that trains, as it is built."""
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "r"},
        "spec": {"mlPolicy": {policy: {}}, "template": {"spec": {"replicatedJobs": [JOB]}}},
    }
    train_job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "t", "namespace": "n"},
        "spec": {"runtimeRef": {"name": "r"}, **spec},
    }
    found = read_runtime(CLUSTER_TRAINING_RUNTIMES, decoded(runtime))
    (job_set,) = (
        component.object for component in pipeline("v1alpha1").build(TrainJob.from_object(decoded(train_job)), found)
    )
    pods = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    built: Object = pods["containers"][0]
    return built


@pytest.mark.parametrize(
    ("policy", "env"),
    [
        pytest.param(
            "torch",
            {
                "PET_NNODES": "1",
                "PET_NPROC_PER_NODE": "1",
                "PET_MASTER_ADDR": "t-node-0-0.t",
                "PET_MASTER_PORT": "29500",
            },
            id="torch",
        ),
        pytest.param("jax", {"JAX_NUM_PROCESSES": "1", "JAX_COORDINATOR_ADDRESS": "t-node-0-0.t:29500"}, id="jax"),
        pytest.param(
            "xgboost",
            {"DMLC_TRACKER_URI": "t-node-0-0.t", "DMLC_TRACKER_PORT": "29500", "DMLC_NUM_WORKER": "1"},
            id="xgboost",
        ),
    ],
)
@pytest.mark.parametrize("trainer", [{}, {"numProcPerNode": 1}], ids=["empty", "one process"])
def test_variables(policy: str, env: dict[str, str], trainer: Object) -> None:
    """The variables and the port are those of Kubeflow Trainer (Go), and there are no others."""
    built = container(policy, trainer=trainer)
    assert {each["name"]: each["value"] for each in built["env"] if "value" in each} == env
    assert len(built["env"]) == len(env) + 1  # the rank
    assert built["ports"] == [{"containerPort": 29500, "protocol": "TCP"}]


@pytest.mark.parametrize("policy", ["torch", "jax", "xgboost"])
def test_no_trainer(policy: str) -> None:
    """Without `trainer` nothing is added."""
    built = container(policy)
    assert built.keys() & {"env", "ports"} == set()


def test_processes_of_jax() -> None:
    """`numProcPerNode` is for torch and MPI; a JAX process uses all devices of its node."""
    built = container("jax", trainer={"numProcPerNode": 4})
    assert built["command"] == ["python"]
    assert {"name": "JAX_NUM_PROCESSES", "value": "1"} in built["env"]
