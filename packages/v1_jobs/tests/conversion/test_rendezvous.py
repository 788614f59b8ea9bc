"""Where the agents of an elastic PyTorchJob meet."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.kube.objects import Object
from trainer.v1alpha1.discovery import Version
from trainer_v1_jobs.api.kinds import KINDS
from trainer_v1_jobs.conversion import convert

FIRST = "$(TRAINJOB_NAME)-node-0-0.$(TRAINJOB_NAME)"


OWN_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
AT_FIRST = {
    "PET_RDZV_BACKEND": "c10d",
    "PET_RDZV_ENDPOINT": f"{FIRST}:29500",
    "PET_RDZV_CONF": "is_host=true",
    **OWN_STORE,
}


def variables(
    policy: Object, version: Version = "v2alpha1", *, replicas: int = 2, port: int | None = None, **metadata: str
) -> Object:
    """Variables of the rendezvous in the runtime and the TrainJob of a job with such a policy and port."""
    ports = [] if port is None else [{"name": "pytorchjob-port", "containerPort": port}]
    container = {"name": "pytorch", "image": "image", "ports": ports}
    worker = {"replicas": replicas, "template": {"spec": {"containers": [container]}}}
    spec = {"elasticPolicy": policy, "pytorchReplicaSpecs": {"Worker": worker}}
    own = metadata or {"name": "job"}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": own, "spec": spec}
    conversion = convert(job, KINDS["kubeflow.org/v1", "PyTorchJob"], version=version)
    assert conversion.runtime is not None
    (replicated,) = conversion.runtime["spec"]["template"]["spec"]["replicatedJobs"]
    (pods,) = replicated["template"]["spec"]["template"]["spec"]["containers"]
    found = [*pods.get("env", ()), *conversion.train_job["spec"]["trainer"].get("env", ())]
    return {each["name"]: each.get("value") for each in found if each["name"].startswith(("PET_RDZV_", "TORCH_"))}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param({}, {}, id="as-the-plugin-has-it"),
        pytest.param({"rdzvBackend": "c10d"}, {}, id="its-backend"),
        pytest.param({"rdzvPort": 29400}, {}, id="its-port"),
        pytest.param({"rdzvHost": "job-worker-0"}, {}, id="the-first-worker"),
        pytest.param({"rdzvPort": 1234}, {"PET_RDZV_ENDPOINT": f"{FIRST}:1234"}, id="port"),
        pytest.param(
            {"rdzvHost": "job-worker-1", "rdzvPort": 1234}, {"PET_RDZV_ENDPOINT": f"{FIRST}:1234"}, id="another-worker"
        ),
        pytest.param({"rdzvHost": "job-worker-0.team-a.svc.cluster.local"}, {}, id="the-first-worker-in-full"),
        pytest.param({"rdzvHost": "other-worker-0"}, {"PET_RDZV_ENDPOINT": "other-worker-0:23456"}, id="another-job"),
        pytest.param(
            {"rdzvHost": "job-worker-0.example.com"},
            {"PET_RDZV_ENDPOINT": "job-worker-0.example.com:23456"},
            id="elsewhere-of-that-name",
        ),
        pytest.param(
            {"rdzvHost": "etcd", "rdzvPort": 2379, "rdzvBackend": "etcd-v2", "rdzvId": "mine"},
            {"PET_RDZV_ENDPOINT": "etcd:2379", "PET_RDZV_BACKEND": "etcd-v2", "PET_RDZV_ID": "mine"},
            id="etcd",
        ),
        pytest.param(
            {"rdzvConf": [{"key": "timeout", "value": "9"}]}, {"PET_RDZV_CONF": "is_host=true,timeout=9"}, id="settings"
        ),
        pytest.param(
            {"rdzvHost": "store", "rdzvPort": 1, "rdzvConf": [{"key": "timeout", "value": "9"}]},
            {"PET_RDZV_ENDPOINT": "store:1", "PET_RDZV_CONF": "timeout=9"},
            id="settings-elsewhere",
        ),
        pytest.param({"standalone": True, "rdzvId": "mine"}, {"PET_RDZV_ID": "mine"}, id="not-alone"),
    ],
)
def test_variables(policy: Any, expected: Object) -> None:
    """What differs from the plugin is said; a pod of the job, by its former name, is the first node."""
    assert variables(policy) == expected


@pytest.mark.parametrize(
    ("policy", "port", "version", "expected"),
    [
        pytest.param({}, 29400, "v2alpha1", {}, id="that-of-the-plugin"),
        pytest.param({}, 4242, "v2alpha1", {"PET_RDZV_ENDPOINT": f"{FIRST}:4242"}, id="another"),
        pytest.param(
            {"rdzvPort": 1}, 4242, "v2alpha1", {"PET_RDZV_ENDPOINT": f"{FIRST}:1"}, id="that-of-the-policy-first"
        ),
        pytest.param(
            {"rdzvHost": "store"}, 4242, "v2alpha1", {"PET_RDZV_ENDPOINT": "store:4242"}, id="of-a-store-elsewhere"
        ),
        pytest.param({}, 4242, "v1alpha1", AT_FIRST | {"PET_RDZV_ENDPOINT": f"{FIRST}:4242"}, id="v1alpha1"),
    ],
)
def test_the_port_of_the_workers(policy: Any, port: int, version: Version, expected: Object) -> None:
    """Agents meet at the port pytorchjob-port, as the proposal of elastic PyTorchJobs has it."""
    assert variables(policy, version, port=port) == expected


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [
        pytest.param("team-a", {}, id="its-own"),
        pytest.param("team-b", {"PET_RDZV_ENDPOINT": "job-worker-0.team-a:23456"}, id="another"),
    ],
)
def test_a_namespace(namespace: str, expected: Object) -> None:
    """A job of the same name in another namespace is another job."""
    assert variables({"rdzvHost": "job-worker-0.team-a"}, name="job", namespace=namespace) == expected


def test_a_name_that_the_server_chooses() -> None:
    """The author of such a job cannot have named its pods."""
    policy = {"rdzvHost": "job-worker-0"}
    assert variables(policy, generateName="job-") == {"PET_RDZV_ENDPOINT": "job-worker-0:23456"}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param({}, AT_FIRST, id="nothing"),
        pytest.param({"rdzvBackend": "c10d"}, AT_FIRST, id="backend"),
        pytest.param({"rdzvId": "mine"}, AT_FIRST | {"PET_RDZV_ID": "mine"}, id="id"),
        pytest.param(
            {"rdzvHost": "store", "rdzvPort": 1},
            {"PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": "store:1", **OWN_STORE},
            id="elsewhere",
        ),
    ],
)
def test_variables_of_v1alpha1(policy: Any, expected: Object) -> None:
    """Its plugin knows no rendezvous, and without these variables torchrun takes the static one."""
    assert variables(policy, "v1alpha1") == expected


@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
def test_a_node_that_stays_alone(version: Version) -> None:
    """It meets nobody."""
    assert variables({"standalone": True, "rdzvId": "mine"}, version, replicas=1) == {}
