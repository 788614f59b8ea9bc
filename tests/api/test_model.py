"""Reading and writing of objects through models."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from trainer.api import model
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob
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
        "resourcesPerNode": {"limits": {"cpu": "1.5", "nvidia.com/gpu": 2}, "claims": [{"name": "c", "request": "r"}]},
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

POD_TEMPLATE = {
    "metadata": {"labels": {"l": "v"}, "annotations": {"a": "any text"}},
    "spec": {
        "restartPolicy": "OnFailure",
        "containers": [
            {
                "name": "launcher",
                "image": "i",
                "command": ["c"],
                "args": ["a"],
                "env": [{"name": "PORT", "value": 29400}],
                "ports": [{"containerPort": 29400}, {"containerPort": 29400, "protocol": "UDP"}],
                "resources": {"limits": {"cpu": "500m", "nvidia.com/gpu": 1}},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                "readinessProbe": {"httpGet": {"port": "http", "path": "/"}},
            }
        ],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    },
}

CLAIM = {
    "metadata": {"name": "scratch"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}

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
            "volumeClaimPolicies": [{"templates": [CLAIM], "retentionPolicy": {"whenDeleted": "Retain"}}],
            "replicatedJobs": [
                {
                    "name": "launcher",
                    "groupName": "g",
                    "replicas": 1,
                    "template": {
                        "metadata": {"labels": {"l": "v"}},
                        "spec": {"backoffLimit": 1, "template": POD_TEMPLATE},
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
    """Every field of a runtime survives reading and writing, with a pod template as it was written."""
    assert ClusterTrainingRuntime.from_object(FULL_RUNTIME, strict=True).to_object() == FULL_RUNTIME


def test_written_object_is_private() -> None:
    """Changing what was written changes neither the model nor what it was read from."""
    before = copy.deepcopy(FULL_RUNTIME)
    model = ClusterTrainingRuntime.from_object(FULL_RUNTIME)
    job = model.to_object()["spec"]["template"]["spec"]["replicatedJobs"][0]
    job["template"]["spec"]["template"]["spec"]["containers"].append(1)
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
        pytest.param(
            {"trainer": {"num_nodes": 2}},
            "spec.trainer.num_nodes: Unknown field: did you mean numNodes?",
            id="python-name-is-not-a-field",
        ),
        pytest.param({"runtimeRef": None}, "spec.runtimeRef: Required value", id="null"),
        pytest.param(
            {"trainer": {"numProcPerNode": 0}},
            "spec.trainer.numProcPerNode: Invalid value: 0: must be at least 1",
            id="no-process",
        ),
        pytest.param(
            {"trainer": {"env": [{"name": f"V{index}"} for index in range(1025)]}},
            "spec.trainer.env: Too many: 1025: must have at most 1024 items",
            id="too-many",
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
        "spec.labels[a]",
        "spec.modelConfig.in",
    ]


@pytest.mark.parametrize("strict", [True, False])
def test_null_is_absent(*, strict: bool) -> None:
    """A field that is null gets its default, as on an API server; one that must be there is missing."""
    spec = {"runtimeRef": {"name": "r", "kind": None}, "suspend": None, "managedBy": None, "trainer": None}
    train_job = TrainJob.from_object({"metadata": {"name": "demo"}, "spec": spec}, strict=strict)

    assert train_job.spec.suspend is False
    assert train_job.spec.managed_by == "kubeflow.org/trainjob-controller"
    assert train_job.spec.runtime_ref.kind == "ClusterTrainingRuntime"
    with pytest.raises(InvalidObjectError, match=r"spec\.runtimeRef\.name: Required value"):
        TrainJob.from_object({"spec": {"runtimeRef": {"name": None}}}, strict=strict)


def test_server_objects_are_read_tolerantly() -> None:
    """A field that only a newer server knows is no error, and is left out."""
    obj = train_job(trainer={"numNodes": 2, "invented": {}})
    assert TrainJob.from_object(obj).to_object()["spec"]["trainer"] == {"numNodes": 2}


@pytest.mark.parametrize("value", [1, "1", "12", "auto", "cpu", "gpu"])
def test_number_of_processes(value: int | str) -> None:
    """numProcPerNode is a word, a number, or a number as a string, and stays as it was written."""
    model = TrainJob.from_object(train_job(trainer={"numProcPerNode": value}), strict=True)
    assert model.to_object()["spec"]["trainer"]["numProcPerNode"] == value


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"trainer": {"numNodes": "2"}}, 'spec.trainer.numNodes: Invalid value: "2": must be an integer', id="type"
        ),
        pytest.param({"runtimeRef": {}}, "spec.runtimeRef.name: Required value", id="missing"),
        pytest.param(
            {"runtimeRef": {"name": "a", "kind": "b"}},
            'spec.runtimeRef.kind: Unsupported value: "b": supported values: "TrainingRuntime", '
            '"ClusterTrainingRuntime"',
            id="choice",
        ),
        pytest.param({"trainer": []}, "spec.trainer: Invalid value: []: must be a mapping of fields", id="mapping"),
        pytest.param(
            {"trainer": {"numProcPerNode": True}},
            "spec.trainer.numProcPerNode: Invalid value: true: must be auto, cpu, gpu or a positive integer",
            id="processes",
        ),
    ],
)
def test_errors_of_a_stored_object(spec: Any, message: str) -> None:
    """What cannot be read at all is named in the same words when objects of a server are read tolerantly."""
    with pytest.raises(InvalidObjectError) as caught:
        TrainJob.from_object(train_job(**spec))
    assert str(caught.value) == message


def test_defaults_of_policies() -> None:
    """Where the KEP states a default it is filled in, with and without an API server."""
    policy: Object = {"mpi": {}}
    spec = ClusterTrainingRuntime.from_object(
        runtime(mlPolicy=policy, podGroupPolicy={"coscheduling": {}}), strict=True
    ).to_object()["spec"]
    assert spec["mlPolicy"]["mpi"] == {
        "mpiImplementation": "OpenMPI",
        "SSHAuthMountPath": "/root/.ssh",
        "runLauncherAsNode": False,
    }
    assert spec["podGroupPolicy"] == {"coscheduling": {"scheduleTimeoutSeconds": 60}}
    torch = ClusterTrainingRuntime.from_object(runtime(mlPolicy={"torch": {}}))
    assert torch.to_object()["spec"]["mlPolicy"]["torch"] == {"numProcPerNode": "auto"}


def test_what_is_prepared_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading strictly and checking bounds make no schema once that is done, so they never hold up the event loop."""
    TrainJob.prepare()
    asked: list[object] = []
    monkeypatch.setattr(model, "model_schema", asked.append)
    monkeypatch.setattr(model, "compile_schema", asked.append)

    TrainJob.from_object(FULL_TRAIN_JOB, strict=True)
    TrainJob.check_bounds(FULL_TRAIN_JOB)

    assert asked == []
