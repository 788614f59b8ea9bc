"""Jobs of the Training and MPI Operator, converted by `trainer convert`, train as they are written.

Their scripts read the variables that the operators gave them, and know nothing of TrainJobs.
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from typing import Any

import pytest
import yaml

from e2e.cluster import IMAGE, Cluster
from e2e.prerequisites import MPI as MPI_PACKAGES

pytestmark = pytest.mark.timeout(300)

FRAMEWORKS = {
    "JAXJob": "jax",
    "MPIJob": "mpi4py",
    "PaddleJob": "paddle",
    "PyTorchJob": "torch",
    "TFJob": "tensorflow",
    "XGBoostJob": "xgboost",
}
"""What the scripts import."""

TORCH = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
role = " ".join(sys.argv[1:]) or "node"
print(f"{role} {dist.get_rank()} of {dist.get_world_size()} has {total.item():.0f}\\n", end="", flush=True)
dist.barrier()
dist.destroy_process_group()
"""
JAX = """
import os, jax
from jax.experimental.multihost_utils import process_allgather
import jax.numpy as jnp
number = int(os.environ["PROCESS_ID"])
jax.distributed.initialize(
    coordinator_address=f"{os.environ['COORDINATOR_ADDRESS']}:{os.environ['COORDINATOR_PORT']}",
    num_processes=int(os.environ["NUM_PROCESSES"]),
    process_id=number,
)
total = int(process_allgather(jnp.array([number + 1])).sum())
print(f"node {number} of {jax.process_count()} has {total}\\n", end="", flush=True)
"""
XGBOOST = """
import os, socket, time
from xgboost import collective
from xgboost.tracker import RabitTracker
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
assert len(os.environ["WORKER_ADDRS"].split(",")) == size - 1
deadline = time.monotonic() + 120
while True:
    try:
        address = socket.getaddrinfo(host, None)[0][4][0]
        break
    except socket.gaierror:
        assert time.monotonic() < deadline
        time.sleep(0.5)
if rank == 0:
    tracker = RabitTracker(host_ip=address, n_workers=size, port=port, sortby="task")
    tracker.start()
with collective.CommunicatorContext(
    dmlc_tracker_uri=address, dmlc_tracker_port=port, dmlc_task_id=f"{rank:03}", dmlc_retry=16
):
    import numpy as np
    total = collective.allreduce(np.array([rank + 1.0]), collective.Op.SUM)
    print(f"node {collective.get_rank()} of {collective.get_world_size()} has {total[0]:.0f}\\n", end="", flush=True)
if rank == 0:
    tracker.wait_for()
"""
PADDLE = """
import paddle, paddle.distributed as dist
dist.init_parallel_env()
total = paddle.to_tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
print(f"node {dist.get_rank()} of {dist.get_world_size()} has {total.item():.0f}\\n", end="", flush=True)
"""
WORKERS = """
import os, tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
context = strategy.cluster_resolver
@tf.function
def step():
    def replica():
        number = tf.cast(context.task_id + 1, tf.float32)
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, number)
    return strategy.run(replica)
total = float(step())
print(f"node {context.task_id} of {strategy.num_replicas_in_sync} has {total:.0f}\\n", end="", flush=True)
"""
SERVERS = """
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
role, index = resolver.task_type, resolver.task_id
if role != "chief":
    tf.distribute.Server(resolver.cluster_spec(), job_name=role, task_index=index, protocol="grpc").join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    total = tf.Variable(0)
@tf.function
def step():
    total.assign_add(1)
for _ in range(10):
    coordinator.schedule(step)
coordinator.join()
tasks = resolver.cluster_spec().num_tasks("worker")
print(f"node {index} of {tasks} has {int(total.numpy())}\\n", end="", flush=True)
"""
MPI = """
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
print(f"node {world.rank} of {world.size} has {total}\\n", end="", flush=True)
"""
MPIRUN = ["mpirun", sys.executable, "-c", MPI]
SERVER = (
    "mkdir -p /run/sshd; exec /usr/sbin/sshd -D -e -f /dev/null -h /root/.ssh/id_rsa "
    "-o AuthorizedKeysFile=/root/.ssh/authorized_keys -o StrictModes=no -o PidFile=none -o LogLevel=FATAL"
)
"""What the configuration of the images of the MPI Operator says."""


def roles(container: str, command: list[str], restart: str = "Never", **replicas: int) -> dict[str, Any]:
    """So many replicas of some roles that run the same."""
    containers = [{"name": container, "image": IMAGE, "command": command}]
    template = {"spec": {"containers": containers}}
    return {
        name: {"replicas": count, "restartPolicy": restart, "template": template} for name, count in replicas.items()
    }


def nodes(size: int) -> list[str]:
    """What all nodes of a training print first."""
    return [f"node {rank} of {size}" for rank in range(size)]


def job(kind: str, roles: dict[str, Any], version: str = "v1", **spec: Any) -> dict[str, Any]:
    """A job, called demo."""
    field = {
        "PyTorchJob": "pytorch",
        "JAXJob": "jax",
        "TFJob": "tf",
        "XGBoostJob": "xgb",
        "PaddleJob": "paddle",
        "MPIJob": "mpi",
    }[kind]
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": kind,
        "metadata": {"name": "demo"},
        "spec": {f"{field}ReplicaSpecs": roles} | spec,
    }


def python(script: str, *arguments: str) -> list[str]:
    """Run a script."""
    return ["python", "-u", "-c", script, *arguments]


def started(launcher: str, script: str) -> list[str]:
    """Run a script by a launcher, which needs a file."""
    return ["sh", "-c", f"cd $(mktemp -d)\ncat > train.py <<'END'\n{script}\nEND\nexec {launcher} train.py"]


@pytest.mark.parametrize(
    ("manifest", "expected", "total"),
    [
        pytest.param(
            job("PyTorchJob", roles("pytorch", python(TORCH), "OnFailure", Master=1, Worker=2)),
            nodes(3),
            6,
            id="pytorch",
        ),
        pytest.param(
            job("PyTorchJob", roles("pytorch", started("torchrun", TORCH), Master=1, Worker=1), nprocPerNode="2"),
            nodes(4),
            10,
            id="pytorch-torchrun",
        ),
        pytest.param(
            job(
                "PyTorchJob",
                roles("pytorch", python(TORCH, "master"), Master=1)
                | roles("pytorch", python(TORCH, "worker"), Worker=2),
            ),
            ["master 0 of 3", "worker 1 of 3", "worker 2 of 3"],
            6,
            id="pytorch-unequal",
        ),
        pytest.param(
            job(
                "PyTorchJob",
                roles("pytorch", started("torchrun", TORCH), "OnFailure", Worker=2),
                elasticPolicy={"minReplicas": 2, "maxReplicas": 3, "maxRestarts": 3},
            ),
            nodes(2),
            3,
            id="pytorch-elastic",
        ),
        pytest.param(job("JAXJob", roles("jax", python(JAX), Worker=2)), nodes(2), 3, id="jax"),
        pytest.param(
            job("TFJob", roles("tensorflow", python(WORKERS), Worker=2), successPolicy="AllWorkers"),
            nodes(2),
            3,
            id="tensorflow",
        ),
        pytest.param(
            job("TFJob", roles("tensorflow", python(SERVERS), Chief=1, PS=1, Worker=2)),
            ["node 0 of 2"],
            10,
            id="tensorflow-ps",
        ),
        pytest.param(
            job("XGBoostJob", roles("xgboost", python(XGBOOST), Master=1, Worker=1)), nodes(2), 3, id="xgboost"
        ),
        pytest.param(
            job("MPIJob", roles("mpi", MPIRUN, Launcher=1) | roles("mpi", ["sleep", "infinity"], Worker=2)),
            nodes(2),
            3,
            id="mpi-v1",
            marks=MPI_PACKAGES,
        ),
        pytest.param(
            job(
                "MPIJob",
                roles("mpi", MPIRUN, "OnFailure", Launcher=1) | roles("mpi", ["sh", "-c", SERVER], Worker=2),
                "v2beta1",
                slotsPerWorker=2,
            ),
            nodes(4),
            10,
            id="mpi-v2beta1",
            marks=MPI_PACKAGES,
        ),
        pytest.param(
            job("PaddleJob", roles("paddle", started("python -m paddle.distributed.launch", PADDLE), Worker=2)),
            nodes(2),
            3,
            id="paddle",
        ),
    ],
)
def test_trainings(cluster: Cluster, manifest: dict[str, Any], expected: list[str], total: int) -> None:
    """All processes find each other by the variables of the operator, and agree on the sum of their numbers.

    A pod that still runs when others have decided the training is deleted, with its log.
    """
    if find_spec(FRAMEWORKS[manifest["kind"]]) is None:
        pytest.skip(f"{FRAMEWORKS[manifest['kind']]} is not installed: make nightly installs it")
    cluster.require_local("the framework")
    cluster.require_pod_networks()
    converted = cluster.trainer("convert", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert converted.returncode == 0, converted.stderr
    cluster.apply(*yaml.safe_load_all(converted.stdout))

    cluster.complete("demo", timeout=240)
    log = cluster.log("demo")
    found = re.findall(r"^(\w+ \d of \d) has", log, re.MULTILINE)
    assert found, log
    assert set(found) <= set(expected), log
    assert set(re.findall(r" of \d has (\d+)$", log, re.MULTILINE)) == {str(total)}
