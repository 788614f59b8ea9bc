"""MPI with the runtimes of config/runtimes: real mpirun, real sshd, one pod for each node."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster import IMAGE, Cluster
from e2e.prerequisites import MPI, needs
from e2e.waiting import until

EXAMPLES = Path(__file__).parents[1] / "examples"

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
    cluster.require_pod_networks()


@MPI
def test_allreduce(cluster: Cluster) -> None:
    """mpirun starts the processes of the example over SSH on both nodes, and they reduce over the network."""
    cluster.kubectl("apply", "-f", str(EXAMPLES / "mpi-allreduce" / "trainjob.yaml"))
    cluster.complete("mpi-allreduce")

    lines = log_of_launcher(cluster, "mpi-allreduce")
    assert ranks(lines) == [
        "rank 0 of 4 on mpi-allreduce-node-0-0",
        "rank 1 of 4 on mpi-allreduce-node-0-0",
        "rank 2 of 4 on mpi-allreduce-node-0-1",
        "rank 3 of 4 on mpi-allreduce-node-0-1",
    ]
    assert "all 4 processes found y = 3.00 x + -1.00" in lines
    assert not [line for line in lines if "known hosts" in line], "ssh must not mix its words into the log"


@MPI
@pytest.mark.parametrize(
    ("nodes", "hosts"),
    [
        pytest.param(1, ["alone-launcher-0-0"], id="launcher-alone"),
        pytest.param(2, ["alone-launcher-0-0", "alone-node-0-0"], id="launcher-and-a-node"),
    ],
)
def test_launcher_as_node(cluster: Cluster, nodes: int, hosts: list[str]) -> None:
    """A launcher that is a node trains as well, with as many other nodes as it takes, if any."""
    # In one write: mpirun mixes what several processes write.
    script = "import os; print(f'on {os.uname().nodename}\\n', end='')"
    command = ["mpirun", "-x", "PATH", "python", "-c", script]
    cluster.apply(train_job("alone", "deepspeed-distributed", command, nodes=nodes))
    cluster.complete("alone")

    lines = log_of_launcher(cluster, "alone")
    assert sorted(line for line in lines if line.startswith("on ")) == [f"on {host}" for host in hosts], lines


@MPI
def test_failure_of_a_process(cluster: Cluster) -> None:
    """When a process fails on a node, so does the TrainJob, and its condition has the last words of mpirun."""
    script = "import os; assert os.environ['OMPI_COMM_WORLD_RANK'] != '1', 'no data on ' + os.uname().nodename"
    cluster.apply(train_job("broken", "mpi-openmpi", ["mpirun", "-x", "PATH", "python", "-c", script]))
    assert cluster.wait_for_state("broken", "Complete", "Failed", timeout=90) == "Failed"

    assert "launcher" in cluster.condition("broken", "Failed")["message"]
    assert "AssertionError: no data on broken-node-0-1" in log_of_launcher(cluster, "broken")


@pytest.mark.parametrize(
    ("runtime", "launcher"),
    [
        pytest.param("mpi-openmpi", ["mpirun", "-x", "PATH"], marks=MPI, id="open-mpi"),
        pytest.param("mpi-mpich", [HYDRA], marks=[SSH, MPICH], id="mpich"),
    ],
)
def test_evicted_node(cluster: Cluster, runtime: str, launcher: list[str]) -> None:
    """Launcher and nodes start again, although the launcher fails as soon as it loses a node; it does not count."""
    script = "import os, time; print('on', os.uname().nodename, flush=True); time.sleep(600)"
    cluster.apply(train_job("moved", runtime, [*launcher, "python", "-c", script]))
    until(lambda: cluster.log("moved", job="launcher").count("on moved-node-0-") == 2, "both nodes run", timeout=90)
    cluster.evict(
        next(pod["metadata"]["name"] for pod in cluster.list("pod") if "-node-0-1-" in pod["metadata"]["name"])
    )
    until(lambda: cluster.restarts("moved") == (1, 0), "it is started again, uncounted", timeout=60)


@SSH
@MPICH
def test_mpich(cluster: Cluster) -> None:
    """Hydra starts the processes of MPICH by the same hostfile and key."""
    command = [HYDRA, "python", "-c", ALLREDUCE_IN_C]
    cluster.apply(train_job("hydra", "mpi-mpich", command, numProcPerNode=2))
    cluster.complete("hydra")

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
    cluster.complete("both")

    total = int("1" * nodes)
    assert ranks(log_of_launcher(cluster, "both")) == [
        f"rank {rank} of {nodes} on both-{host}: {total}" for rank, host in enumerate(ranks_on)
    ]


@MPI
def test_mlx(cluster: Cluster) -> None:
    """MLX averages gradients over MPI: the example learns to read digits on a launcher and a node."""
    cluster.kubectl("apply", "-f", str(EXAMPLES / "mlx-digits" / "trainjob.yaml"))
    cluster.complete("mlx-digits")

    lines = log_of_launcher(cluster, "mlx-digits")
    assert ranks(lines) == [
        "rank 0 of 2 on mlx-digits-launcher-0-0",
        "rank 1 of 2 on mlx-digits-node-0-0",
    ]
    assert float(lines[-1].removeprefix("test accuracy: ").removesuffix(" %")) > 90


def train_job(name: str, runtime: str, command: list[str], *, nodes: int = 2, **trainer: Any) -> dict[str, Any]:
    """A TrainJob whose launcher runs a command."""
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": runtime},
            "trainer": {"image": IMAGE, "numNodes": nodes, "command": command} | trainer,
        },
    }


def log_of_launcher(cluster: Cluster, name: str) -> list[str]:
    """What the launcher has written, itself and for its processes."""
    return cluster.kubectl("logs", f"job/{name}-launcher-0").stdout.splitlines()


def ranks(lines: list[str]) -> list[str]:
    """The lines by which processes introduce themselves, which come in any order."""
    return sorted(line for line in lines if line.startswith("rank "))
