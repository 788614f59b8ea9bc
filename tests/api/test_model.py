"""Reading and writing of objects through models."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def train_job(**spec: Any) -> Object:
    """A TrainJob as a user writes it."""
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "demo"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}} | spec,
    }


def runtime(**spec: Any) -> Object:
    """A ClusterTrainingRuntime as a platform engineer writes it."""
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "demo"},
        "spec": {"template": {"spec": {}}} | spec,
    }


FULL_TRAIN_JOB = train_job(
    trainer={
        "image": "i",
        "command": ["c"],
        "args": ["a"],
        "env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "numNodes": 2,
        "resourcesPerNode": {"limits": {"cpu": 1.5, "nvidia.com/gpu": 2}, "claims": [{"name": "c", "request": "r"}]},
        "numProcPerNode": "auto",
    },
    datasetConfig={"storageUri": "s3://b", "env": [{"name": "A", "value": "1"}], "secretRef": {"name": "s"}},
    modelConfig={"input": {"storageUri": "hf://m"}, "output": {"storageUri": "s3://o", "secretRef": {"name": "s"}}},
    labels={"l": "v"},
    annotations={"a": "v"},
    podSpecOverrides=[
        {
            "targetJobs": [{"name": "node"}],
            "containers": [
                {
                    "name": "trainer",
                    "command": ["c"],
                    "args": ["a"],
                    "env": [{"name": "A", "value": "1"}],
                    "envFrom": [{"secretRef": {"name": "s"}}],
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                }
            ],
            "initContainers": [{"name": "init"}],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "serviceAccountName": "sa",
            "nodeSelector": {"n": "1"},
            "tolerations": [{"key": "k", "operator": "Exists"}],
        }
    ],
    suspend=True,
    managedBy="kueue.x-k8s.io/multikueue",
) | {
    "status": {
        "conditions": [
            {
                "type": "Created",
                "status": "True",
                "reason": "JobsCreationSucceeded",
                "message": "",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
                "observedGeneration": 1,
            }
        ],
        "jobsStatus": [{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}],
        "state": "Created",
        "trainerStatus": {
            "progressPercentage": 45,
            "estimatedRemainingSeconds": 795649,
            "estimatedRemainingTimeSummary": "9 days 5 hours",
            "currentStep": 4500,
            "totalSteps": 10000,
            "currentEpoch": 2,
            "totalEpochs": 5,
            "trainMetrics": {"loss": "0.2347"},
            "evalMetrics": {"eval_loss": "0.2451"},
            "lastUpdatedTime": "2026-01-23T10:30:45Z",
        },
    }
}
FULL_TRAIN_JOB["spec"]["runtimeRef"] |= {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime"}

FULL_RUNTIME = runtime(
    mlPolicy={
        "mpi": {
            "numProcPerNode": 5,
            "mpiImplementation": "OpenMPI",
            "SSHAuthMountPath": "/root/.ssh",
            "runLauncherAsNode": True,
        },
        "numNodes": 2,
    },
    podGroupPolicy={"coscheduling": {"scheduleTimeoutSeconds": 100}},
    template={
        "metadata": {"labels": {"l": "v"}, "annotations": {"a": "v"}},
        "spec": {
            "network": {"enableDNSHostnames": True, "subdomain": "s", "publishNotReadyAddresses": True},
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
            "failurePolicy": {
                "maxRestarts": 1,
                "restartStrategy": "Recreate",
                "rules": [{"name": "r", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]}],
            },
            "startupPolicy": {"startupPolicyOrder": "InOrder"},
            "coordinator": {"replicatedJob": "launcher", "jobIndex": 0, "podIndex": 0},
            "ttlSecondsAfterFinished": 60,
            "volumeClaimPolicies": [{"templates": [{"spec": {}}], "retentionPolicy": {"whenDeleted": "Retain"}}],
            "replicatedJobs": [
                {
                    "name": "launcher",
                    "groupName": "g",
                    "replicas": 1,
                    "dependsOn": [{"name": "node", "status": "Ready"}],
                    "template": {
                        "metadata": {"labels": {"l": "v"}},
                        "spec": {"backoffLimit": 1, "template": {"spec": {"anything": [{"goes": None}]}}},
                    },
                }
            ],
        },
    },
)


def test_train_job_round_trip() -> None:
    """Every field of a TrainJob survives reading and writing."""
    assert TrainJob.from_object(FULL_TRAIN_JOB, strict=True).to_object() == FULL_TRAIN_JOB


def test_runtime_round_trip() -> None:
    """Every field of a runtime survives reading and writing, and what pod templates contain is not looked at."""
    assert ClusterTrainingRuntime.from_object(FULL_RUNTIME, strict=True).to_object() == FULL_RUNTIME


def test_written_object_is_private() -> None:
    """Changing what was written changes neither the model nor what it was read from."""
    before = copy.deepcopy(FULL_RUNTIME)
    model = ClusterTrainingRuntime.from_object(FULL_RUNTIME)
    job = model.to_object()["spec"]["template"]["spec"]["replicatedJobs"][0]
    job["template"]["spec"]["template"]["spec"]["anything"].append(1)
    assert model.to_object() == FULL_RUNTIME == before


def test_defaults() -> None:
    """What the CRD defaults is also there without an API server."""
    spec = TrainJob.from_object(train_job()).to_object()["spec"]
    assert spec == {
        "runtimeRef": {
            "name": "torch-distributed",
            "apiGroup": "trainer.kubeflow.org",
            "kind": "ClusterTrainingRuntime",
        },
        "suspend": False,
        "managedBy": "kubeflow.org/trainjob-controller",
    }


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"trainer": {"numNodes": "2"}}, "spec.trainer.numNodes: must be an integer, got '2'", id="type"),
        pytest.param({"trainer": {"numNodes": 0}}, "spec.trainer.numNodes: must be at least 1, got 0", id="minimum"),
        pytest.param(
            {"trainer": {"numNode": 2}}, "spec.trainer.numNode: unknown field; did you mean numNodes?", id="typo"
        ),
        pytest.param(
            {"trainer": {"num_nodes": 2}},
            "spec.trainer.num_nodes: unknown field; did you mean numNodes?",
            id="python-name-is-not-a-field",
        ),
        pytest.param(
            {"runtimeRef": {"name": "a", "versoin": "1"}},
            "spec.runtimeRef.versoin: unknown field; known here: name, apiGroup, kind",
            id="unknown",
        ),
        pytest.param({"runtimeRef": {}}, "spec.runtimeRef.name: is required", id="missing"),
        pytest.param({"runtimeRef": {"name": ""}}, "spec.runtimeRef.name: must not be empty", id="empty"),
        pytest.param({"runtimeRef": None}, "spec.runtimeRef: must be a mapping of fields, got None", id="null"),
        pytest.param({"trainer": {"args": "x"}}, "spec.trainer.args: must be a list, got 'x'", id="list"),
        pytest.param({"suspend": "yes"}, "spec.suspend: must be true or false, got 'yes'", id="boolean"),
        pytest.param(
            {"trainer": {"env": [{"name": "A", "value": 29400}]}},
            "spec.trainer.env[0].value: must be a string, got 29400; put it in quotes",
            id="number-in-env",
        ),
        pytest.param(
            {"trainer": {"numProcPerNode": "many"}},
            "spec.trainer.numProcPerNode: must be auto, cpu, gpu or an integer, got 'many'",
            id="processes-word",
        ),
        pytest.param(
            {"trainer": {"numProcPerNode": 0}},
            "spec.trainer.numProcPerNode: must be at least 1, got 0",
            id="no-process",
        ),
        pytest.param(
            {"trainer": {"resourcesPerNode": {"limits": {"cpu": "2x"}}}},
            "spec.trainer.resourcesPerNode.limits.cpu: must be a quantity such as 2, 500m or 4Gi, got '2x'",
            id="quantity",
        ),
        pytest.param(
            {"managedBy": "me"},
            "spec.managedBy: must be '', 'kubeflow.org/trainjob-controller' or 'kueue.x-k8s.io/multikueue', got 'me'",
            id="managed-by",
        ),
    ],
)
def test_errors_of_a_users_file(spec: Any, message: str) -> None:
    """A wrong field is named by its path, with the remedy, in one line."""
    with pytest.raises(InvalidObjectError) as caught:
        TrainJob.from_object(train_job(**spec), strict=True)
    assert str(caught.value) == message
    assert caught.value.subject == "TrainJob demo"


def test_all_errors_at_once() -> None:
    """Every wrong field has its line, unknown ones in different places too."""
    with pytest.raises(InvalidObjectError) as caught:
        TrainJob.from_object(train_job(trainer={"numNodes": "2"}, labels={"a": 1}, modelConfig={"in": {}}), strict=True)
    assert [error.field for error in caught.value.errors] == [
        "spec.trainer.numNodes",
        "spec.modelConfig.in",
        "spec.labels.a",
    ]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        pytest.param({"torch": {}, "jax": {}}, "only one of torch, mpi, jax may be set", id="two-sources"),
        pytest.param(
            {"numNodes": 1, "torch": {"elasticPolicy": {"minNodes": 1}}},
            "numNodes must be left out when torch.elasticPolicy is set; use minNodes and maxNodes",
            id="elastic-with-numNodes",
        ),
    ],
)
def test_policies_that_exclude_each_other(policy: Any, message: str) -> None:
    """Settings that contradict each other are refused."""
    with pytest.raises(InvalidObjectError) as caught:
        ClusterTrainingRuntime.from_object(runtime(mlPolicy=policy))
    assert str(caught.value) == f"spec.mlPolicy: {message}"


def test_server_objects_are_read_tolerantly() -> None:
    """A field that only a newer server knows is no error, and is left out."""
    obj = train_job(trainer={"numNodes": 2, "invented": {}})
    assert TrainJob.from_object(obj).to_object()["spec"]["trainer"] == {"numNodes": 2}


@pytest.mark.parametrize("value", [1, "1", "12", "auto", "cpu", "gpu"])
def test_number_of_processes(value: int | str) -> None:
    """numProcPerNode is a word, a number, or a number as a string, and stays as it was written."""
    model = TrainJob.from_object(train_job(trainer={"numProcPerNode": value}), strict=True)
    assert model.to_object()["spec"]["trainer"]["numProcPerNode"] == value
