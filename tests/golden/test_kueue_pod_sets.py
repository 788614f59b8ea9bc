"""The pods of a JobSet are those for which Kueue reserves quota."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.kueue_pod_sets import STEP, pod_sets, pod_sets_of_jobset
from tests.webhooks.nets import pipeline
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TrainJob
from trainer.framework.runtimes.runtimes import read_runtime
from trainer.kube.objects import Object, name_of
from trainer.v1alpha1.client import decoded

API_VERSION = "trainer.kubeflow.org/v1alpha1"
SHIPPED = [
    runtime
    for file in sorted((Path(__file__).parents[2] / "config" / "v1alpha1" / "runtimes").glob("*.yaml"))
    for runtime in yaml.load_all(file.read_text(), yaml.CSafeLoader)
    if runtime["kind"] == CLUSTER_TRAINING_RUNTIMES.kind
]
GPUS = {"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 2, "cpu": "4"}}
TRAINERS = [
    pytest.param(None, id="no trainer"),
    pytest.param({}, id="least"),
    *(pytest.param({"numNodes": count, "resourcesPerNode": GPUS}, id=f"{count} nodes") for count in (1, 2, 5)),
]


def made_by_us(train_job: Object, runtime: Object) -> Object:
    """The JobSet of a TrainJob."""
    found = read_runtime(CLUSTER_TRAINING_RUNTIMES, decoded(runtime))
    made = [
        component.object for component in pipeline("v1alpha1").build(TrainJob.from_object(decoded(train_job)), found)
    ]
    return next(obj for obj in made if obj["kind"] == "JobSet")


def job(runtime: Object, trainer: Object | None = None, **spec: Any) -> Object:
    """A TrainJob on a runtime."""
    spec |= {} if trainer is None else {"trainer": trainer}
    metadata = {"name": "demo", "namespace": "default", "uid": "u"}
    ref = {"runtimeRef": {"name": name_of(runtime)}}
    return {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": metadata, "spec": ref | spec}


def replicated_job(name: str, *, step: str = "", sizes: Object | None = None, **fields: Any) -> Object:
    """A replicated Job with a container `node`, and one beside it."""
    containers = [{"name": each, "image": "i", "resources": {"requests": {"cpu": "1"}}} for each in ("node", "side")]
    pods = {"spec": {"containers": containers, "nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "a"}]}}
    labels = {"metadata": {"labels": {STEP: step}}} if step else {}
    return {"name": name, "template": {**labels, "spec": {**(sizes or {}), "template": pods}}} | fields


def runtime_of(policy: Object | None, *jobs: Object) -> Object:
    """A runtime with these replicated Jobs."""
    spec: Object = {"template": {"spec": {"replicatedJobs": [*jobs]}}}
    spec |= {} if policy is None else {"mlPolicy": policy}
    return {"apiVersion": API_VERSION, "kind": "ClusterTrainingRuntime", "metadata": {"name": "own"}, "spec": spec}


NODE, LAUNCHER = replicated_job("node", step="trainer"), replicated_job("launcher", step="trainer")
OWN = [
    pytest.param(runtime_of({"numNodes": 3, "torch": {}}, NODE), id="nodes of the runtime"),
    pytest.param(runtime_of({"numNodes": 3}, NODE), id="without a framework"),
    pytest.param(runtime_of(None, replicated_job("node", step="trainer", sizes={"parallelism": 2})), id="no policy"),
    pytest.param(
        runtime_of({"torch": {}}, NODE, replicated_job("loader", replicas=2, sizes={"parallelism": 3})),
        id="another replicated Job",
    ),
    pytest.param(
        runtime_of({"mpi": {"runLauncherAsNode": True}}, replicated_job("node"), LAUNCHER), id="MPI, launcher trains"
    ),
    pytest.param(
        runtime_of({"mpi": {"runLauncherAsNode": False}}, replicated_job("node"), LAUNCHER), id="MPI, launcher waits"
    ),
]


CASES = [
    pytest.param(*runtime.values, *trainer.values, id=f"{runtime.id}, {trainer.id}")
    for runtime in [*(pytest.param(each, id=name_of(each)) for each in SHIPPED), *OWN]
    for trainer in TRAINERS
    # Recipes of torchtune for several nodes are for larger models.
    if "torchtune" not in str(runtime.id) or trainer.id in {"no trainer", "least", "1 nodes"}
]


@pytest.mark.parametrize(("runtime", "trainer"), CASES)
def test_the_same_pods(runtime: Object, trainer: Object | None) -> None:
    """As many pods, with the same resources and for the same nodes."""
    train_job = job(runtime, trainer)
    assert pod_sets_of_jobset(made_by_us(train_job, runtime)) == pod_sets(train_job, runtime)


def patch(manager: str, **jobs: Object) -> Object:
    """A runtime patch of the pods of some replicated Jobs."""
    changes = [{"name": name, "template": {"spec": {"template": change}}} for name, change in jobs.items()]
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": changes}}}}


ZONE: Object = {"spec": {"nodeSelector": {"zone": "a"}, "schedulingGates": [{"name": "example.com/own"}]}}
FLAVOR: Object = {
    "metadata": {"labels": {"kueue.x-k8s.io/podset": "node"}, "annotations": {"kueue.x-k8s.io/workload": "w"}},
    "spec": {
        "nodeSelector": {"zone": "b", "capacity": "spot"},
        "tolerations": [{"key": "a"}, {"key": "spot", "operator": "Exists"}],
        "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}],
    },
}
KUEUE = "kueue.x-k8s.io/manager"
OWN_PATCH = patch("example.com/me", node=ZONE, loader={"spec": {"nodeSelector": {"zone": "c"}}})
EMPTY: Object = {"manager": KUEUE, "trainingRuntimeSpec": {"template": {"spec": {}}}}


@pytest.mark.parametrize(
    "patches",
    [
        pytest.param([OWN_PATCH, EMPTY], id="as it is created"),
        pytest.param([OWN_PATCH, patch(KUEUE, node=FLAVOR)], id="admitted"),
        pytest.param([patch(KUEUE, node=FLAVOR, loader=FLAVOR), OWN_PATCH], id="the user's patch comes last"),
        pytest.param([OWN_PATCH, patch(KUEUE)], id="stopped"),
    ],
)
def test_patches(patches: list[Object]) -> None:
    """The nodes are those that the patches ask for, later ones before earlier ones."""
    runtime = runtime_of({"torch": {}}, NODE, replicated_job("loader"))
    train_job = job(runtime, {"numNodes": 2}, runtimePatches=patches)
    assert pod_sets_of_jobset(made_by_us(train_job, runtime)) == pod_sets(train_job, runtime)
