"""What an MPI runtime and its TrainJobs must be like."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, train_job
from tests.framework.static_reader import StaticReader
from tests.plugins.mpi_samples import findings, mpi_runtime
from trainer.framework.building.extraction import extract
from trainer.manager import profile_of
from trainer.plugins.mpi.plugin import MPI

JOBS = "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs"
PATH = "ClusterTrainingRuntime/blueprint spec.mlPolicy.mpi.SSHAuthMountPath"
NODE, LAUNCHER = replicated_job("node"), replicated_job("launcher")


@pytest.mark.parametrize(
    ("version", "own", "is_node", "is_warned"),
    [
        pytest.param("v2alpha1", {}, True, False, id="those-of-the-node"),
        pytest.param("v2alpha1", {"limits": {"nvidia.com/gpu": 1}}, True, True, id="fewer"),
        pytest.param("v1alpha1", {}, True, True, id="none-with-v1alpha1"),
    ],
)
def test_devices_of_a_launcher(version: Any, own: Any, is_node: bool, is_warned: bool) -> None:
    """A launcher that trains gets as many processes as a node, and its author learns that it has fewer GPUs."""
    node = replicated_job("node", {"name": "node", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 4}}})
    launcher = replicated_job("launcher", {"name": "node", "image": "i", "resources": own})
    job = train_job()
    info = extract(job, mpi_runtime(node, launcher, runLauncherAsNode=is_node), profile=profile_of(version))
    found = [each.field for each in MPI(StaticReader()).validate(info, None, job)]
    field = f"{JOBS}[launcher].template.spec.template.spec.containers[node].resources"
    assert found == ([field] if is_warned else [])


@pytest.mark.parametrize(
    ("jobs", "errors"),
    [
        pytest.param(
            [NODE, replicated_job("launcher", dependsOn=[{"name": "node", "status": "Ready"}])], [], id="fine"
        ),
        pytest.param(
            [NODE, replicated_job("launcher", dependsOn=[{"name": "node", "status": "Complete"}])],
            [
                (
                    f'{JOBS}[launcher].dependsOn[0].status: Invalid value: "Complete": must be Ready: '
                    "the nodes run until the launcher has ended"
                )
            ],
            id="after-the-end-of-the-nodes",
        ),
        pytest.param(
            [LAUNCHER, replicated_job("node", dependsOn=[{"name": "launcher", "status": "Ready"}])],
            [
                (
                    f'{JOBS}[node].dependsOn[0].name: Invalid value: "launcher": must not be the launcher, '
                    "which starts once the nodes are ready"
                )
            ],
            id="nodes-after-the-launcher",
        ),
    ],
)
def test_order(jobs: Any, errors: list[str]) -> None:
    """An order in which the launcher would wait forever is refused."""
    assert findings(mpi_runtime(*jobs)) == errors


def volume_at(path: str, name: str = "data") -> Any:
    """A replicated Job that mounts a volume."""
    container = {"name": "trainer", "image": "i", "volumeMounts": [{"name": name, "mountPath": path}]}
    return replicated_job("launcher", container, pod={"volumes": [{"name": name, "emptyDir": {}}]})


@pytest.mark.parametrize(
    ("launcher", "directory", "errors"),
    [
        pytest.param(volume_at("/data"), "/root/.ssh", [], id="elsewhere"),
        pytest.param(
            volume_at("/data", "mpi-hostfile"),
            "/root/.ssh",
            [
                (
                    f"{JOBS}[launcher].template.spec.template.spec.volumes: "
                    'Invalid value: "mpi-hostfile": is the name of a volume of the mpi plugin; rename it'
                )
            ],
            id="name-of-a-volume",
        ),
        pytest.param(
            LAUNCHER,
            "/etc/mpi",
            [f'{PATH}: Invalid value: "/etc/mpi": must be another directory: /etc/mpi/hostfile is the hostfile'],
            id="keys-at-the-hostfile",
        ),
        pytest.param(
            LAUNCHER,
            "/my keys",
            [
                (
                    f'{PATH}: Invalid value: "/my keys": '
                    "must not contain white space: it becomes part of the arguments of ssh"
                )
            ],
            id="white-space",
        ),
    ],
)
def test_directories(launcher: Any, directory: str, errors: list[str]) -> None:
    """Keys and hostfile do not hide what the runtime mounts."""
    assert findings(mpi_runtime(NODE, launcher, SSHAuthMountPath=directory)) == errors


def env(path: str, name: str) -> Any:
    """Where a TrainJob sets a variable of the training."""
    variables = [{"name": name, "value": "x"}]
    if path == "spec.trainer.env":
        return {"trainer": {"env": variables}}
    override = {"targetJobs": [{"name": "launcher"}], "containers": [{"name": "trainer", "env": variables}]}
    return {"podSpecOverrides": [override]}


@pytest.mark.parametrize(
    ("implementation", "path", "name", "refused"),
    [
        pytest.param("OpenMPI", "spec.trainer.env", "OMPI_MCA_plm_rsh_args", True, id="OpenMPI"),
        pytest.param(
            "OpenMPI",
            "spec.podSpecOverrides[0].containers[0].env",
            "OMPI_MCA_orte_default_hostfile",
            True,
            id="override",
        ),
        pytest.param("OpenMPI", "spec.trainer.env", "HYDRA_HOST_FILE", False, id="other-implementation"),
    ],
)
def test_reserved_variables(implementation: str, path: str, name: str, refused: bool) -> None:
    """Variables by which the launcher finds its nodes are refused, those of other implementations are not."""
    error = f"{path}: Forbidden: must not set {name}, which the mpi plugin sets; remove it"
    assert findings(mpi_runtime(mpiImplementation=implementation), **env(path, name)) == [error] * refused


NEEDED = "is needed for a user other than root to read the SSH key"
HARMFUL = "lets a group read the SSH key, which ssh refuses when it runs as root"


@pytest.mark.parametrize(
    ("pod", "container", "warning"),
    [
        pytest.param({}, {}, None, id="nothing-said"),
        pytest.param({"runAsUser": 1000, "fsGroup": 1000}, {}, None, id="user-with-group"),
        pytest.param({"fsGroup": 1000}, {"runAsUser": 1000}, None, id="user-of-the-container-with-group"),
        pytest.param({"runAsUser": 0}, {}, None, id="root"),
        pytest.param({"runAsUser": 1000}, {}, NEEDED, id="user-without-group"),
        pytest.param({"runAsUser": 0}, {"runAsUser": 1000}, NEEDED, id="user-of-the-container-without-group"),
        pytest.param({"runAsNonRoot": True}, {}, NEEDED, id="not-root-without-group"),
        pytest.param({"runAsUser": 0, "fsGroup": 0}, {}, HARMFUL, id="root-with-group"),
        pytest.param({"runAsUser": 1000, "fsGroup": 7}, {"runAsUser": 0}, HARMFUL, id="root-in-the-container"),
    ],
)
def test_users_that_cannot_read_the_key(pod: Any, container: Any, warning: str | None) -> None:
    """Whoever writes a runtime in which ssh would refuse the key is warned: admission may still add a group."""
    node = replicated_job(
        "node", {"name": "trainer", "image": "i", "securityContext": container}, pod={"securityContext": pod}
    )
    field = f"{JOBS}[node].template.spec.template.spec.securityContext.fsGroup"
    assert findings(mpi_runtime(node, LAUNCHER)) == ([f"{field}: {warning}"] if warning else [])
