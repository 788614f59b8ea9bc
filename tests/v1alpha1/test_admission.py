"""Admission of v1alpha1 by the rules of Kubeflow Trainer (Go)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from msgspec.structs import replace

from tests.webhooks.blueprints import StaticRuntimes
from tests.webhooks.nets import pipeline
from tests.webhooks.requests import request_of
from trainer.kube.objects import Object
from trainer.kube.webhook.admission import AdmissionRequest, AdmissionResponse
from trainer.v1alpha1.admission import V1Alpha1Admission
from trainer.v1alpha1.client import SERVED, decoded
from trainer_kube_testing.clock import ManualClock

API_VERSION = "trainer.kubeflow.org/v1alpha1"
NOW, BEFORE = "2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z"
SERVED_BY_KIND = {resource.kind: resource for resource in SERVED.values()}


def replicated_job(name: str, *containers: str, ancestor: str = "", init: str = "") -> Object:
    """A replicated Job with these containers."""
    pods: Object = {"containers": [{"name": each, "image": "i"} for each in containers]}
    if init:
        pods["initContainers"] = [{"name": init, "image": "i"}]
    labels = {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": ancestor}}} if ancestor else {}
    return {"name": name, "template": {**labels, "spec": {"template": {"spec": pods}}}}


NODE = replicated_job("node", "node", "side", ancestor="trainer", init="init")


def runtime(
    name: str, policy: Object | None, *jobs: Object, kind: str = "ClusterTrainingRuntime", **labels: str
) -> Object:
    """A runtime of v1alpha1."""
    metadata: Object = {"name": name, "labels": {f"trainer.kubeflow.org/{key}": text for key, text in labels.items()}}
    if kind == "TrainingRuntime":
        metadata["namespace"] = "default"
    spec = ({} if policy is None else {"mlPolicy": policy}) | {
        "template": {"spec": {"replicatedJobs": [*(jobs or [NODE])]}}
    }
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


MPI = {"numProcPerNode": 1, "mpiImplementation": "OpenMPI", "runLauncherAsNode": True}
LAUNCHER = replicated_job("launcher", "node", ancestor="trainer")
WITH_INSTALLER = replicated_job("node", "node", ancestor="trainer")
WITH_INSTALLER["template"]["spec"]["template"]["spec"]["initContainers"] = [{"name": "flux-installer", "image": "i"}]
RUNTIMES = [
    runtime("torch", {"torch": {}}),
    runtime("old", {"torch": {}}, support="deprecated"),
    runtime("mpi", {"mpi": MPI}, replicated_job("node", "node"), LAUNCHER),
    runtime("lonely", {"mpi": MPI}, LAUNCHER),
    runtime("launched", {"mpi": MPI | {"runLauncherAsNode": False}}, replicated_job("node", "node"), LAUNCHER),
    runtime("bare", None),
    runtime("xgboost", {"xgboost": {}}),
    runtime("flux", {"flux": {}}),
    runtime("reserved", {"flux": {}}, WITH_INSTALLER),
    runtime("data", {"torch": {}}, replicated_job("dataset-initializer", "dataset-initializer"), NODE),
    runtime("other-container", {"torch": {}}, replicated_job("dataset-initializer", "fetch"), NODE),
    runtime("mine", {"torch": {}}, kind="TrainingRuntime"),
]


@pytest.fixture
def admission() -> V1Alpha1Admission:
    """The webhooks, with the runtimes of the tables."""
    return V1Alpha1Admission(pipeline("v1alpha1"), StaticRuntimes([decoded(each) for each in RUNTIMES]), ManualClock())


def job(name: str = "torch", **spec: Any) -> Object:
    """A TrainJob of v1alpha1 on a ClusterTrainingRuntime."""
    ref = {"name": name, "kind": "ClusterTrainingRuntime", "apiGroup": "trainer.kubeflow.org"}
    metadata = {"name": "demo", "namespace": "default", "uid": "u"}
    return {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": metadata, "spec": {"runtimeRef": ref, **spec}}


def patched(pod_spec: Object, name: str = "node", manager: str = "example.io/m", **members: Any) -> Object:
    """The runtimePatches of one manager."""
    job_patch = {"name": name, "template": {"spec": {"template": {"spec": pod_spec}}}}
    template = {"spec": {"replicatedJobs": [job_patch]}}
    return {"runtimePatches": [{"manager": manager, **members, "trainingRuntimeSpec": {"template": template}}]}


def env(*names: str) -> Object:
    """Settings of the trainer with these variables."""
    return {"trainer": {"env": [{"name": name, "value": "1"} for name in names]}}


def request(obj: Object, old: Object | None = None) -> AdmissionRequest:
    """What the API server asks."""
    return replace(request_of(obj, old), resource=SERVED_BY_KIND[obj["kind"]])


async def validated(admission: V1Alpha1Admission, obj: Object, old: Object | None = None) -> AdmissionResponse:
    """The answer of the validating webhook."""
    handler = admission.validate_train_job if obj["kind"] == "TrainJob" else admission.validate_runtime
    return await handler(request(obj, old))


ENTRY = {"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": {"spec": {}}}}


async def test_more_than_the_model_has(admission: V1Alpha1Admission) -> None:
    """Patches of more Jobs than v2alpha1 has overrides are none that its author is warned of."""
    jobs = [{"name": "node"}, {"name": "launcher"}]
    template = {"template": {"spec": {"replicatedJobs": jobs}}}
    patches = [{"manager": f"example.io/{number}", "trainingRuntimeSpec": template} for number in range(9)]
    response = await validated(admission, job("mpi", runtimePatches=patches))
    assert (response.allowed, response.warnings) == (True, ())


async def test_several_errors(admission: V1Alpha1Admission) -> None:
    """All are shown, in the form of Kubeflow Trainer (Go)."""
    obj = job(**env("B", "PET_NODE_RANK", "PET_NNODES"), initializer={"dataset": {}, "model": {}})
    response = await validated(admission, obj)
    assert (response.status_code, response.reason) == (403, "Forbidden")
    assert response.message.startswith("[spec.trainer.env: ")
    assert "must not have reserved envs, invalid envs configured: [PET_NNODES PET_NODE_RANK]" in response.message
    assert response.message.count("spec.runtimeRef: ") == 2
    assert response.message.endswith("]")


SUSPENDED = {"suspend": True}
ACTIVE = {"jobsStatus": [{"name": "node", "active": 1}]}
PATCH = patched({"nodeSelector": {"a": "b"}})
MOUNT = {"name": "data", "mountPath": "/data"}
SIDE = {"name": "side", "volumeMounts": [MOUNT | {"readOnly": False}]}
SENT = patched({"nodeSelector": {}, "volumes": [], "containers": [SIDE]}, time=BEFORE)
SENT_BACK = patched({"containers": [{"name": "side", "volumeMounts": [MOUNT]}]}, time=BEFORE)
GRACE = patched({"terminationGracePeriodSeconds": 0})


@pytest.mark.parametrize(
    ("old", "new", "status", "text"),
    [
        pytest.param({}, SUSPENDED, ACTIVE, "", id="suspend alone"),
        pytest.param(patched({}), GRACE, {}, "when the TrainJob is suspended before or after", id="zero is a change"),
        pytest.param(SENT, SUSPENDED | SENT_BACK, ACTIVE, "", id="suspend by a client that leaves out what is empty"),
    ],
)
async def test_changes_of_patches(
    admission: V1Alpha1Admission, old: Object, new: Object, status: Object, text: str
) -> None:
    """Runtime patches change while no pods run."""
    response = await validated(admission, job(**new), job(**old) | {"status": status})
    assert response.allowed is not bool(text)
    assert text in response.message


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        pytest.param(job(trainer={"numNodes": 0}), "spec.trainer.numNodes: ", id="no nodes"),
        pytest.param(
            job(**patched({"nodeSelector": {"a b": "c"}})),
            "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec"
            ".nodeSelector",
            id="a wrong label in a patch",
        ),
        pytest.param(
            job("data", initializer={"dataset": {"env": [{"name": ""}]}}),
            "spec.initializer.dataset.env[0].name",
            id="a variable without name",
        ),
        pytest.param(
            job("bare", trainer={"resourcesPerNode": {}}),
            "spec.trainer.resourcesPerNode: has no effect: ClusterTrainingRuntime/bare has no spec.mlPolicy",
            id="resources without a policy",
        ),
        pytest.param(
            job("launched", trainer={"resourcesPerNode": {}}),
            "spec.trainer.resourcesPerNode: is for the launcher alone",
            id="resources of a launcher",
        ),
    ],
)
async def test_warnings(admission: V1Alpha1Admission, obj: Object, field: str) -> None:
    """What Kubeflow Trainer (Go) accepts although it cannot be built is accepted with a warning, in its own paths."""
    response = await validated(admission, obj)
    assert response.allowed
    assert [warning for warning in response.warnings if warning.startswith(field)]


async def test_a_runtime_that_keeps_its_mistakes(admission: V1Alpha1Admission) -> None:
    """One that was stored before can get labels and lose finalizers."""
    wrong = runtime("r", {}, {**NODE, "replicas": 2})
    labelled = wrong | {"metadata": wrong["metadata"] | {"labels": {"a": "b"}}}
    assert not (await validated(admission, wrong)).allowed
    assert (await validated(admission, labelled, old=wrong)).allowed
    assert not (await validated(admission, wrong, old=runtime("r", {}))).allowed


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        pytest.param(runtime("r", {"torch": {}}, framework="torch"), [], id="listed"),
        pytest.param(runtime("r", None, framework="torch"), ["spec.mlPolicy"], id="no policy"),
        pytest.param(
            runtime("r", {"torch": {}}, replicated_job("node", "node"), framework="torch"),
            ["spec.template.spec.replicatedJobs"],
            id="no label of the Job",
        ),
        pytest.param(runtime("r", None, replicated_job("node", "node")), [], id="not of the SDK"),
    ],
)
async def test_runtimes_that_the_sdk_lists(admission: V1Alpha1Admission, obj: Object, fields: list[str]) -> None:
    """Who breaks the list of runtimes for everybody who uses the SDK is warned."""
    warnings = (await validated(admission, obj)).warnings
    assert [text.partition(": ")[0] for text in warnings if "list_runtimes() of the SDK" in text] == fields


async def test_a_runtime_without_mistakes(admission: V1Alpha1Admission) -> None:
    """Its author is not warned."""
    assert (await validated(admission, RUNTIMES[0])).warnings == ()


OTHER = patched({"nodeSelector": {"c": "d"}})


@pytest.mark.parametrize(
    ("old", "new", "time"),
    [
        pytest.param(None, PATCH, NOW, id="a new TrainJob"),
        pytest.param(None, patched({}, time=BEFORE), BEFORE, id="the author's time"),
        pytest.param(patched({}, time=BEFORE), patched({}), BEFORE, id="unchanged, time removed"),
        pytest.param(patched({}, time=BEFORE), patched({}, time=NOW), BEFORE, id="unchanged, time changed"),
        pytest.param(SENT, SENT_BACK, BEFORE, id="sent back"),
        pytest.param(patched({}, time=BEFORE), OTHER, NOW, id="changed"),
        pytest.param({}, OTHER, NOW, id="a new manager"),
    ],
)
async def test_times(admission: V1Alpha1Admission, old: Object | None, new: Object, time: str) -> None:
    """Each patch says when it was last changed."""
    sent = job(**new)
    before = copy.deepcopy(sent)

    response = await admission.default_train_job(request(sent, None if old is None else job(**old)))

    assert (response.object or sent)["spec"]["runtimePatches"][0]["time"] == time
    assert sent == before


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(None, id="none"),
        pytest.param([], id="list"),
        pytest.param({"runtimePatches": {}}, id="patches that are no list"),
        pytest.param({"runtimePatches": [None, 1, {"manager": {}}]}, id="patches that are no objects"),
        pytest.param({"runtimeRef": {"name": 1}}, id="a number as name"),
    ],
)
async def test_wrong_shapes(admission: V1Alpha1Admission, spec: Any) -> None:
    """Nothing that reaches the webhooks makes them fail."""
    obj = job() | {"spec": spec}
    assert (await admission.default_train_job(request(obj))).allowed
    response = await validated(admission, obj)
    assert response.status_code in {200, 403}
