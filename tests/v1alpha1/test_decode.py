"""v1alpha1 in the shape of the model."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainer.api.model import ApiModel
from trainer.api.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.kube.objects import Object
from trainer.v1alpha1.decode import decode, is_decodable, restored_runtime

UPSTREAM = Path(__file__).parents[3] / "shared" / "peer" / "upstream"
MODELS: dict[str, type[ApiModel]] = {
    "TrainJob": TrainJob,
    "TrainingRuntime": TrainingRuntime,
    "ClusterTrainingRuntime": ClusterTrainingRuntime,
}
REF = {"name": "torch-distributed", "kind": "ClusterTrainingRuntime", "apiGroup": "trainer.kubeflow.org"}


def train_job(**spec: Any) -> Object:
    """A TrainJob of v1alpha1."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "demo"},
        "spec": {"runtimeRef": REF, **spec},
        "status": {"conditions": []},
    }


def runtime(**spec: Any) -> Object:
    """A runtime of v1alpha1."""
    kind = "ClusterTrainingRuntime"
    metadata = {"name": "blueprint"}
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def patched(template: Object, **patch: Any) -> Object:
    """A TrainJob with one runtime patch."""
    return train_job(
        runtimePatches=[{"manager": "example.io/m", **patch, "trainingRuntimeSpec": {"template": template}}]
    )


def job_patch(pod_spec: Object | None = None, **template: Any) -> Object:
    """A TrainJob with a patch of the replicated Job node."""
    pods = {"spec": {"template": {"spec": pod_spec}}} if pod_spec is not None else {}
    return patched({"spec": {"replicatedJobs": [{"name": "node", "template": {**template, **pods}}]}})


NODE = {"targetJobs": [{"name": "node"}], "manager": "example.io/m"}


@pytest.mark.parametrize(
    ("obj", "changes"),
    [
        pytest.param(train_job(suspend=True, activeDeadlineSeconds=5), {"suspend": True, "activeDeadlineSeconds": 5}),
        pytest.param(
            train_job(managedBy="trainer.kubeflow.org/trainjob-controller"),
            {"managedBy": "kubeflow.org/trainjob-controller"},
            id="manager",
        ),
        pytest.param(
            train_job(managedBy="kueue.x-k8s.io/multikueue"),
            {"managedBy": "kueue.x-k8s.io/multikueue"},
            id="multikueue",
        ),
        pytest.param(
            train_job(trainer={"numNodes": 2, "numProcPerNode": 4, "command": ["sh", "-c", "a b"]}),
            {"trainer": {"numNodes": 2, "numProcPerNode": 4, "command": ["sh", "-c", "a b"]}},
            id="trainer",
        ),
        pytest.param(
            train_job(trainer={"command": ["/opt/my app/run"]}),
            {"trainer": {"command": ["'/opt/my app/run'"]}},
            id="command-with-a-space",
        ),
        pytest.param(train_job(initializer={}), {}, id="no-initializer"),
        pytest.param(
            train_job(
                initializer={
                    "dataset": {"storageUri": "hf://d", "secretRef": {"name": "token"}},
                    "model": {"storageUri": "hf://m", "secretRef": {"name": ""}},
                }
            ),
            {
                "datasetConfig": {"storageUri": "hf://d", "secretRef": {"name": "token"}},
                "modelConfig": {"input": {"storageUri": "hf://m"}},
            },
            id="initializers",
        ),
        pytest.param(patched({"spec": {}}), {}, id="patch-of-kueue"),
        pytest.param(
            job_patch({"tolerations": []}), {"podSpecOverrides": [NODE | {"tolerations": []}]}, id="no-tolerations"
        ),
        pytest.param(
            job_patch(
                {
                    "serviceAccountName": "a",
                    "tolerations": [{"key": "a"}],
                    "affinity": {"nodeAffinity": {}},
                    "containers": [{"name": "node", "securityContext": {"runAsUser": 1}}],
                },
                metadata={"labels": {"of": "job"}},
            ),
            {
                "podSpecOverrides": [
                    NODE
                    | {
                        "serviceAccountName": "a",
                        "tolerations": [{"key": "a"}],
                        "tolerationPolicy": "Replace",
                        "affinity": {"nodeAffinity": {}},
                        "containers": [{"name": "node", "securityContext": {"runAsUser": 1}}],
                        "jobMetadata": {"labels": {"of": "job"}},
                    }
                ]
            },
            id="patch-of-a-job",
        ),
        pytest.param(
            patched(
                {
                    "metadata": {"labels": {"of": "jobset"}},
                    "spec": {
                        "replicatedJobs": [
                            {
                                "name": "node",
                                "template": {"spec": {"template": {"metadata": {"annotations": {"of": "pods"}}}}},
                            }
                        ]
                    },
                },
                time="2026-01-02T03:04:05Z",
            ),
            {
                "jobSetMetadata": {"labels": {"of": "jobset"}},
                "podSpecOverrides": [
                    NODE | {"time": "2026-01-02T03:04:05Z", "metadata": {"annotations": {"of": "pods"}}}
                ],
            },
            id="metadata",
        ),
    ],
)
def test_train_jobs(obj: Object, changes: Object) -> None:
    """Each member has its place in the model, which reads it strictly."""
    before = copy.deepcopy(obj)
    decoded = decode(obj)
    assert decoded.object["spec"] == {"runtimeRef": REF} | changes
    assert decoded.losses == ()
    assert "status" not in decoded.object
    assert TrainJob.from_object(decoded.object, strict=True).to_object()["spec"].items() >= {"runtimeRef": REF}.items()
    assert obj == before


def test_a_wrong_command_stays_wrong() -> None:
    """What is no text is not made one."""
    obj = train_job(trainer={"command": [{"a b": 1}]})
    assert decode(obj).object["spec"]["trainer"] == {"command": [{"a b": 1}]}


def test_later_patches_win() -> None:
    """Metadata of the JobSet is merged in the order of the patches; their overrides keep it."""
    obj = train_job(
        runtimePatches=[
            {
                "manager": f"example.io/{name}",
                "trainingRuntimeSpec": {
                    "template": {
                        "metadata": {"labels": {"a": name, name: name}},
                        "spec": {"replicatedJobs": [{"name": "node"}]},
                    }
                },
            }
            for name in ("first", "second")
        ]
    )
    spec = decode(obj).object["spec"]
    assert spec["jobSetMetadata"] == {"labels": {"a": "second", "first": "first", "second": "second"}}
    assert [override["manager"] for override in spec["podSpecOverrides"]] == ["example.io/first", "example.io/second"]


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        pytest.param({"torch": {"envInjection": {}}}, {"numNodes": 1, "torch": {}}, id="torch"),
        pytest.param(
            {"torch": {"envInjection": {"targets": [{"jobName": "a", "containerNames": ["b"]}]}}},
            {"numNodes": 1, "torch": {"envInjection": {"targets": [{"jobName": "a", "containerNames": ["b"]}]}}},
            id="torch-targets",
        ),
        pytest.param(
            {"numNodes": 2, "mpi": {"numProcPerNode": 1, "mpiImplementation": "", "sshAuthMountPath": "/ssh"}},
            {"numNodes": 2, "mpi": {"SSHAuthMountPath": "/ssh"}},
            id="mpi-defaults",
        ),
        pytest.param({"mpi": {"numProcPerNode": 2}}, {"mpi": {"numProcPerNode": 2}}, id="mpi"),
        pytest.param({"flux": {"numProcPerNode": 1}}, {"numNodes": 1, "flux": {"numProcPerNode": 1}}, id="flux"),
    ],
)
def test_runtimes(spec: Object, policy: Object) -> None:
    """Policies keep their meaning; a default of v1alpha1 that counts GPUs is left to the model."""
    decoded = decode(runtime(mlPolicy=spec))
    assert decoded.object["spec"] == {"mlPolicy": policy}
    assert decoded.losses == ()
    assert decode(restored_runtime(decoded.object)) == decoded


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        pytest.param(
            runtime(podGroupPolicy={"coscheduling": {}, "volcano": {}}), "spec.podGroupPolicy.volcano", id="two-gangs"
        ),
        pytest.param(
            runtime(podGroupPolicy={"workload": {}, "volcano": {}}), "spec.podGroupPolicy.workload", id="a-third-gang"
        ),
        pytest.param(
            runtime(template={"spec": {"replicatedJobs": [{"template": {"metadata": {"name": "x"}}}]}}),
            "spec.template.spec.replicatedJobs[0].template.metadata.name",
            id="name-in-a-template",
        ),
        pytest.param(
            job_patch(metadata={"finalizers": []}),
            "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.metadata.finalizers",
            id="finalizers-of-jobs",
        ),
    ],
)
def test_what_has_no_counterpart(obj: Object, field: str) -> None:
    """It is named with its path in v1alpha1."""
    assert [loss.field for loss in decode(obj).losses] == [field]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(None, id="null"),
        pytest.param("x", id="text"),
        pytest.param({"trainer": [], "initializer": "x", "runtimePatches": {}}, id="members"),
        pytest.param({"trainer": {"command": [{}]}, "initializer": {"model": 1}}, id="items"),
        pytest.param({"runtimePatches": [None, {"trainingRuntimeSpec": {"template": {"metadata": 1}}}]}, id="patches"),
        pytest.param({"mlPolicy": {"mpi": {"numProcPerNode": {}}, "torch": 1}, "template": {"spec": []}}, id="policy"),
        pytest.param(
            {"template": {"metadata": [], "spec": {"replicatedJobs": [1, {"template": 1}]}}, "podGroupPolicy": 1},
            id="template",
        ),
        pytest.param(
            {"runtimePatches": [{"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [1]}}}}]}, id="jobs"
        ),
    ],
)
@pytest.mark.parametrize("kind", MODELS)
def test_nothing_is_refused(spec: Any, kind: str) -> None:
    """What is wrong is left to the reader of the result."""
    decode({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind, "spec": spec})
    decode({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind})


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param("x", id="text"),
        pytest.param({"apiVersion": "trainer.kubeflow.org/v2alpha1", "kind": "TrainJob"}, id="version"),
        pytest.param({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "OptimizationJob"}, id="kind"),
    ],
)
def test_other_objects(obj: Any) -> None:
    """Only TrainJobs and runtimes of v1alpha1 are decoded."""
    assert not is_decodable(obj)


@pytest.mark.skipif(not UPSTREAM.is_dir(), reason=f"the files of Kubeflow Trainer (Go) are not in {UPSTREAM.name}")
def test_everything_that_is_released() -> None:
    """The examples and runtimes of Kubeflow Trainer (Go) are valid in the model, and nothing of them is lost."""
    objects = [
        obj
        for file in sorted([*UPSTREAM.glob("examples/*.yaml"), *UPSTREAM.glob("runtimes/**/*.yaml")])
        for obj in yaml.load_all(file.read_text(), yaml.CSafeLoader)
        if is_decodable(obj)
    ]
    assert len(objects) > 10
    for obj in objects:
        decoded = decode(obj)
        assert decoded.losses == ()
        if obj["kind"] != "TrainJob":
            assert decode(restored_runtime(decoded.object)) == decoded
        MODELS[obj["kind"]].from_object(decoded.object, strict=True)
