"""MPI with the runtimes of config/runtimes: real mpirun, real sshd, one pod for each node."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import IMAGE, Cluster
from e2e.debian_packages import needs
from e2e.gang_schedulers import COSCHEDULING, installed
from e2e.installation import CONFIG
from e2e.waiting import until

EXAMPLES = Path(__file__).parents[1] / "examples"

OPEN_MPI = needs("openmpi-bin", "openssh-server")
SSH = needs("openssh-server")

MPICH_PREFIX = Path(sys.prefix) / "mpich"
"""Where `make e2e` installs it, beside the environment: its mpirun must not hide that of Open MPI.

MPICH before 4.2 over UCX, which Debian 12 has, sometimes hangs in MPI_Finalize (pmodels/mpich#6596).
"""
HYDRA = str(MPICH_PREFIX / "bin" / "mpiexec.hydra")
MPICH = pytest.mark.skipif(not Path(HYDRA).exists(), reason="MPICH is not installed: make .venv/.mpich")

ALLREDUCE_IN_C = f"""
import ctypes, os
mpi = ctypes.CDLL("{MPICH_PREFIX}/lib/libmpi.so.12")
world, integer, plus = 0x44000000, 0x4C000405, 0x58000003
assert mpi.MPI_Init(None, None) == 0
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
own = ctypes.c_int(10 ** rank.value)
assert mpi.MPI_Allreduce(ctypes.byref(own), ctypes.byref(total), 1, integer, plus, world) == 0
print(f"rank {{rank.value}} of {{size.value}} on {{os.uname().nodename}}: {{total.value}}\\n", end="", flush=True)
mpi.MPI_Finalize()
"""
"""An Allreduce with handles as in MPICH's mpi.h: mpi4py of the environment takes the first libmpi, that of Open MPI."""

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(autouse=True)
def pod_network(cluster: Cluster) -> None:
    """Several sshd on one port, and names that ssh resolves, take networks of their own."""
    if cluster.is_local and not cluster.pod_network.startswith("netns"):
        pytest.skip(f"pods share one network on this machine ({cluster.pod_network})")


@OPEN_MPI
def test_allreduce(cluster: Cluster) -> None:
    """mpirun starts the processes of the example over SSH on both nodes, and they reduce over the network."""
    cluster.kubectl("apply", "-f", str(EXAMPLES / "mpi-allreduce" / "trainjob.yaml"))
    complete(cluster, "mpi-allreduce")

    lines = log_of_launcher(cluster, "mpi-allreduce")
    assert ranks(lines) == [
        "rank 0 of 4 on mpi-allreduce-node-0-0",
        "rank 1 of 4 on mpi-allreduce-node-0-0",
        "rank 2 of 4 on mpi-allreduce-node-0-1",
        "rank 3 of 4 on mpi-allreduce-node-0-1",
    ]
    assert "all 4 processes found y = 3.00 x + -1.00" in lines
    assert not [line for line in lines if "known hosts" in line], "ssh must not mix its words into the log"


@OPEN_MPI
def test_key_and_hostfile(cluster: Cluster) -> None:
    """The key is the TrainJob's own, stays the same when it is resumed, and goes with it."""
    cluster.apply(train_job("keys", "mpi-openmpi", ["mpirun", "true"], suspend=True))
    cluster.wait_for_state("keys", "Suspended")
    name = secret_of_keys(cluster, "keys")
    secret, hostfile = cluster.get("secret", name), cluster.get("configmap", "keys-mpi-hostfile")
    assert secret is not None
    assert hostfile is not None
    assert secret["type"] == "kubernetes.io/ssh-auth"
    assert hostfile["data"]["hostfile"] == "keys-node-0-0.keys slots=1\nkeys-node-0-1.keys slots=1\n"

    cluster.kubectl("patch", "trainjob", "keys", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    complete(cluster, "keys")

    assert cluster.get("secret", name) == secret
    cluster.kubectl("delete", "trainjob", "keys")
    until(lambda: not cluster.get("secret", name), "the key is gone")
    until(lambda: not cluster.get("configmap", "keys-mpi-hostfile"), "the hostfile is gone")


@OPEN_MPI
def test_a_key_that_is_lost_while_suspended(cluster: Cluster) -> None:
    """The resume makes another, with which launcher and nodes find each other."""
    cluster.apply(train_job("lost", "mpi-openmpi", ["mpirun", "true"], suspend=True))
    cluster.wait_for_state("lost", "Suspended")
    name = secret_of_keys(cluster, "lost")
    cluster.kubectl("delete", "secret", name)
    cluster.kubectl("patch", "trainjob", "lost", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    complete(cluster, "lost")
    assert cluster.get("secret", name) is not None


@OPEN_MPI
@pytest.mark.parametrize(
    ("nodes", "hosts"),
    [
        pytest.param(1, ["alone-launcher-0-0"], id="launcher-alone"),
        pytest.param(2, ["alone-launcher-0-0", "alone-node-0-0"], id="launcher-and-a-node"),
    ],
)
def test_launcher_as_node(cluster: Cluster, nodes: int, hosts: list[str]) -> None:
    """A launcher that is a node trains as well, with as many other nodes as it takes, if any."""
    script = "import os; print('on', os.uname().nodename)"
    command = ["mpirun", "-x", "PATH", "python", "-c", script]
    cluster.apply(train_job("alone", "deepspeed-distributed", command, nodes=nodes))
    complete(cluster, "alone")

    log = [line for line in log_of_launcher(cluster, "alone") if line.startswith("on ")]
    assert sorted(log) == [f"on {host}" for host in hosts]


@OPEN_MPI
def test_launcher_as_node_of_a_gang(cluster: Cluster) -> None:
    """All nodes are one gang, which starts at once, and the launcher waits by itself until it reaches the others."""
    if not cluster.is_local:
        pytest.skip("installs and removes the CRD of a gang scheduler, and needs a cluster without such a scheduler")
    runtime = yaml.safe_load((CONFIG / "runtimes" / "deepspeed_distributed.yaml").read_text())
    runtime |= {"kind": "TrainingRuntime", "metadata": {"name": "gang"}}
    runtime["spec"]["podGroupPolicy"] = {"coscheduling": {}}
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        job["template"]["spec"]["template"]["spec"]["schedulerName"] = "scheduler-plugins-scheduler"
    command = ["mpirun", "-x", "PATH", "python", "-c", "import os; print('on', os.uname().nodename)"]
    wanted = train_job("gang", "gang", command, nodes=3)
    wanted["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
    with installed(cluster, COSCHEDULING):
        cluster.apply(runtime)
        until(lambda: is_accepted(cluster, wanted), "the manager knows PodGroups", timeout=90)
        cluster.apply(wanted)
        complete(cluster, "gang")
        log = [line for line in log_of_launcher(cluster, "gang") if line.startswith("on ")]
        assert sorted(log) == ["on gang-launcher-0-0", "on gang-node-0-0", "on gang-node-0-1"]
        cluster.kubectl("delete", "trainjob", "gang")


def is_accepted(cluster: Cluster, obj: dict[str, Any]) -> bool:
    return cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(obj), check=False).returncode == 0


@OPEN_MPI
def test_failure_of_a_process(cluster: Cluster) -> None:
    """When a process fails on a node, so does the TrainJob, and its condition has the last words of mpirun."""
    script = "import os; assert os.environ['OMPI_COMM_WORLD_RANK'] != '1', 'no data on ' + os.uname().nodename"
    cluster.apply(train_job("broken", "mpi-openmpi", ["mpirun", "-x", "PATH", "python", "-c", script]))
    assert cluster.wait_for_state("broken", "Complete", "Failed", timeout=90) == "Failed"

    job = cluster.get("trainjob", "broken")
    assert job is not None
    (failed,) = [each for each in job["status"]["conditions"] if each["type"] == "Failed"]
    assert "launcher" in failed["message"]
    assert "AssertionError: no data on broken-node-0-1" in log_of_launcher(cluster, "broken")


@SSH
@MPICH
def test_mpich(cluster: Cluster) -> None:
    """Hydra starts the processes of MPICH by the same hostfile and key."""
    command = [HYDRA, "python", "-c", ALLREDUCE_IN_C]
    cluster.apply(train_job("hydra", "mpi-mpich", command, numProcPerNode=2))
    complete(cluster, "hydra")

    assert ranks(log_of_launcher(cluster, "hydra")) == [
        "rank 0 of 4 on hydra-node-0-0: 1111",
        "rank 1 of 4 on hydra-node-0-0: 1111",
        "rank 2 of 4 on hydra-node-0-1: 1111",
        "rank 3 of 4 on hydra-node-0-1: 1111",
    ]


@SSH
@MPICH
@pytest.mark.parametrize(
    ("nodes", "ranks_on"),
    [
        pytest.param(1, ["launcher-0-0"], id="launcher-alone"),
        pytest.param(2, ["launcher-0-0", "node-0-0"], id="launcher-and-a-node"),
    ],
)
def test_mpich_launcher_as_node(cluster: Cluster, nodes: int, ranks_on: list[str]) -> None:
    """Hydra starts processes beside itself without SSH, for the launcher has no sshd."""
    blueprint = cluster.get("clustertrainingruntime", "mpi-mpich")
    assert blueprint is not None
    spec = blueprint["spec"]
    spec["mlPolicy"]["mpi"]["runLauncherAsNode"] = True
    api_version = blueprint["apiVersion"]
    own = {"apiVersion": api_version, "kind": "TrainingRuntime", "metadata": {"name": "mine"}, "spec": spec}
    cluster.apply(own)
    job = train_job("both", "mine", [HYDRA, "python", "-c", ALLREDUCE_IN_C], nodes=nodes)
    job["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
    cluster.apply(job)
    complete(cluster, "both")

    total = int("1" * nodes)
    assert ranks(log_of_launcher(cluster, "both")) == [
        f"rank {rank} of {nodes} on both-{host}: {total}" for rank, host in enumerate(ranks_on)
    ]


@OPEN_MPI
def test_mlx(cluster: Cluster) -> None:
    """MLX averages gradients over MPI: the example learns to read digits on a launcher and a node."""
    cluster.kubectl("apply", "-f", str(EXAMPLES / "mlx-digits" / "trainjob.yaml"))
    complete(cluster, "mlx-digits")

    lines = log_of_launcher(cluster, "mlx-digits")
    assert ranks(lines) == [
        "rank 0 of 2 on mlx-digits-launcher-0-0",
        "rank 1 of 2 on mlx-digits-node-0-0",
    ]
    assert float(lines[-1].removeprefix("test accuracy: ").removesuffix(" %")) > 90


def train_job(
    name: str, runtime: str, command: list[str], *, nodes: int = 2, suspend: bool = False, **trainer: Any
) -> dict[str, Any]:
    """A TrainJob whose launcher runs a command."""
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": runtime},
            "suspend": suspend,
            "trainer": {"image": IMAGE, "numNodes": nodes, "command": command} | trainer,
        },
    }


def complete(cluster: Cluster, name: str) -> None:
    """Wait until a TrainJob has ended; it must be Complete."""
    if cluster.wait_for_state(name, "Complete", "Failed", timeout=120) == "Failed":
        raise AssertionError(cluster.kubectl("describe", "trainjob,pod").stdout)


def log_of_launcher(cluster: Cluster, name: str) -> list[str]:
    """What the launcher has written, itself and for its processes."""
    return cluster.kubectl("logs", f"job/{name}-launcher-0").stdout.splitlines()


def secret_of_keys(cluster: Cluster, name: str) -> str:
    """The name of the Secret that the pods of a TrainJob mount."""
    jobset = cluster.get("jobset", name)
    assert jobset is not None
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    [volume] = [each for each in pod["volumes"] if each["name"] == "mpi-ssh-auth"]
    return str(volume["secret"]["secretName"])


def ranks(lines: list[str]) -> list[str]:
    """The lines by which processes introduce themselves, which come in any order."""
    return sorted(line for line in lines if line.startswith("rank "))
