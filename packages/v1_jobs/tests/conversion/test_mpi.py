"""Pods of MPIJobs are what the MPI Operator makes of them after admission."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.kube.objects import Object, mapping_at
from trainer.v1alpha1.discovery import Version
from trainer_v1_jobs.api.kinds import KINDS
from trainer_v1_jobs.conversion import Conversion, convert

HIDDEN = {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
HOME = {"sshAuthMountPath": "/home/mpiuser/.ssh"}
GPU = {"limits": {"nvidia.com/gpu": 1}}


def converted(
    pod: Object | None = None,
    container: Object | None = None,
    *,
    api: str = "v2beta1",
    workers: int = 1,
    version: Version = "v2alpha1",
    **spec: Any,
) -> Conversion:
    """An MPIJob whose pods all have these members."""
    containers = [
        {"name": "main", "image": "i", "command": ["mpirun"]} | (container or {}),
        {"name": "s", "image": "i"},
    ]
    role = {"template": {"spec": {"containers": containers} | (pod or {})}}
    roles = {"Launcher": role} | ({"Worker": role | {"replicas": workers}} if workers else {})
    job = {
        "apiVersion": f"kubeflow.org/{api}",
        "kind": "MPIJob",
        "metadata": {"name": "demo"},
        "spec": {"mpiReplicaSpecs": roles} | spec,
    }
    return convert(job, KINDS[f"kubeflow.org/{api}", "MPIJob"], version=version)


def pods(conversion: Conversion) -> dict[str, Object]:
    """The pods of the replicated Jobs."""
    assert conversion.runtime is not None
    jobs = conversion.runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return {job["name"]: job["template"]["spec"]["template"]["spec"] for job in jobs}


def fields(conversion: Conversion) -> list[str]:
    """The paths of what is lost."""
    return [finding.field for finding in conversion.findings]


@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param({}, HIDDEN, id="beside-workers"),
        pytest.param({"container": {"resources": GPU}}, HIDDEN, id="with-gpus"),
        pytest.param({"runLauncherAsWorker": True}, {}, id="a-worker"),
        pytest.param({"workers": 0}, {}, id="alone"),
        pytest.param({"api": "v1"}, HIDDEN, id="v1"),
        pytest.param({"api": "v1", "container": {"resources": GPU}}, {}, id="v1-with-gpus"),
    ],
)
def test_gpus_of_the_launcher(job: Any, expected: Object, version: Version) -> None:
    """A launcher that does not train sees no GPUs; workers and sidecars do."""
    found = pods(converted(version=version, **job))

    hidden = {
        (name, position): {each["name"]: each["value"] for each in container.get("env", []) if each["name"] in HIDDEN}
        for name, pod in found.items()
        for position, container in enumerate(pod["containers"])
    }
    assert hidden.pop(("launcher", 0)) == expected
    assert not any(hidden.values())


@pytest.mark.parametrize("api", ["v2beta1", "v1"])
@pytest.mark.parametrize(
    ("pod", "policy"),
    [
        pytest.param({}, None, id="own-network"),
        pytest.param({"dnsPolicy": "Default"}, "Default", id="own-policy"),
        pytest.param({"hostNetwork": True}, "ClusterFirstWithHostNet", id="host-network"),
        pytest.param({"hostNetwork": True, "dnsPolicy": "Default"}, "ClusterFirstWithHostNet", id="whatever-it-says"),
    ],
)
def test_dns_of_the_host_network(pod: Object, policy: str | None, api: str) -> None:
    """Pods in the network of their machine find each other by DNS."""
    assert {each.get("dnsPolicy") for each in pods(converted(pod, api=api)).values()} == {policy}


@pytest.mark.parametrize(
    ("pod", "implementation", "env", "lost"),
    [
        pytest.param({}, "MPICH", [], False, id="pod-network"),
        pytest.param({"hostNetwork": True}, "OpenMPI", [], False, id="open-mpi"),
        pytest.param({"hostNetwork": True}, "MPICH", [], True, id="mpich"),
        pytest.param({"hostNetwork": True}, "Intel", [], True, id="intel"),
        pytest.param(
            {"hostNetwork": True}, "Intel", [{"name": "I_MPI_HYDRA_IFACE", "value": "ens5"}], False, id="lost"
        ),
    ],
)
def test_interfaces_of_the_host_network(pod: Object, implementation: str, env: Any, lost: bool) -> None:
    """Hydra's interface, which is that of pods where nobody names it, is lost on machines."""
    found = fields(converted(pod, {"env": env}, mpiImplementation=implementation))

    assert found == (["spec.mpiReplicaSpecs[Launcher].template.spec.hostNetwork"] if lost else [])


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param({"container": {"securityContext": {"runAsUser": 1000}}} | HOME, {"fsGroup": 1000}, id="container"),
        pytest.param(
            {"pod": {"securityContext": {"runAsUser": 7}}} | HOME, {"runAsUser": 7, "fsGroup": 7}, id="of-the-pod"
        ),
        pytest.param(HOME, {"fsGroup": 1000}, id="of-the-image"),
        pytest.param({"pod": {"securityContext": {"fsGroup": 5}}} | HOME, {"fsGroup": 5}, id="a-group-of-its-own"),
        pytest.param({"container": {"securityContext": {"runAsUser": 0}}} | HOME, {}, id="root"),
        pytest.param({}, {}, id="directory-of-root"),
        pytest.param({"sshAuthMountPath": "/root/.ssh"}, {}, id="stated-directory-of-root"),
    ],
)
def test_who_reads_the_key(job: Any, expected: Object) -> None:
    """In another directory than that of root, any user could read the key; the group of pods lets theirs do so."""
    found = converted(**job)

    assert [mapping_at(pod, "securityContext") for pod in pods(found).values()] == [expected] * 2
    assert fields(found) == []


def test_the_key_of_another_user_of_v1() -> None:
    """Such a job needed no SSH, so its user is lost."""
    found = converted(container={"securityContext": {"runAsUser": 1000}}, api="v1")

    assert {f"spec.mpiReplicaSpecs[{role}].template.spec.securityContext" for role in ("Launcher", "Worker")} <= {
        *fields(found)
    }


@pytest.mark.parametrize(
    ("account", "lost"),
    [pytest.param("demo-launcher", True, id="that-of-the-operator"), pytest.param("mine", False, id="another")],
)
def test_service_accounts(account: str, lost: bool) -> None:
    """The account that only the operator made for a launcher is lost."""
    found = fields(converted({"serviceAccountName": account}, api="v1"))
    assert ("spec.mpiReplicaSpecs[Launcher].template.spec.serviceAccountName" in found) == lost
