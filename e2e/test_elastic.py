"""Elastic PyTorch with the real torchrun: nodes come, go and die while a training runs.

JobSet leaves its feature gate ElasticJobSet off, so this needs a dev cluster of its own where it is on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from e2e.cluster import Cluster, train_job
from e2e.conftest import running_cluster
from e2e.installation import CONFIG
from e2e.processes import with_argument
from e2e.progress_view import progress
from e2e.waiting import until
from trainer.api.progress_tags import TAG
from trainer.plugins.torch.elastic import RENDEZVOUS_CONFIGURATION

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="looks for the processes of a dev cluster of its own"),
    pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed: make nightly installs it"),
]

TIMEOUT = 90.0
"""Seconds for one step: new processes import PyTorch, on as many cores as there are."""

EXAMPLE = Path(__file__).parents[1] / "examples" / "torch-elastic" / "trainjob.yaml"
HURRY = "join_timeout=120,last_call_timeout=4,read_timeout=60,keep_alive_interval=1,keep_alive_max_attempt=3"
RENDEZVOUS = f"{RENDEZVOUS_CONFIGURATION},{HURRY}"
"""As we advise, but in a hurry: a node that is gone is missed after 3 seconds instead of 15."""

FIRST_NODE = """
import sys
from torch.distributed.elastic.rendezvous import c10d_rendezvous_backend as c10d
from torch.distributed.elastic.rendezvous.api import RendezvousParameters
from torch.distributed.elastic.rendezvous.utils import _parse_rendezvous_config as parse

c10d._matches_machine_hostname = lambda host: False
c10d.create_backend(RendezvousParameters("c10d", "127.0.0.1:0", "id", 1, 1, **parse(sys.argv[1] + ",read_timeout=2")))
print("keeps the store")
"""

LAST_IS_FIRST = """
if [ "$JOB_COMPLETION_INDEX" != 0 ]; then export PET_LOCAL_ADDR=$(hostname -i); fi
exec torchrun train.py
"""
"""torchrun ranks nodes by their addresses: numbers come before the name that the first pod has."""

TRAIN = """
import os, sys, time
from pathlib import Path
import torch
import torch.distributed as dist

marker, *goal = sys.argv[1:]
sizes = Path("/state/sizes")
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
if rank == 0:
    with sizes.open("a") as file:
        file.write(f"{world}\\n")
print(f"rank {rank} of {world}\\n", end="", flush=True)
# The training has reached its goal when it has had these sizes one after the other, and made some steps in the last.
for step in range(1_000_000):
    seen = iter(sizes.read_text().split() if rank == 0 else [])
    done = torch.tensor([float(rank == 0 and step >= 20 and all(size in seen for size in goal))])
    dist.all_reduce(done)
    if done.item():
        break
    time.sleep(0.05)
print(f"rank {rank} is done\\n", end="", flush=True)
dist.barrier()
sys.stdout.flush()
os._exit(0)
"""


STATE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "state"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Mi"}}},
}
"""A volume that pods share."""


class TrainingProcess(NamedTuple):
    """A process of a pod."""

    pid: int
    node: str
    """Index of the pod."""
    is_worker: bool
    """Whether it trains, rather than being the torchrun that started it."""


@pytest.fixture(scope="module")
def elastic_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A dev cluster whose JobSet lets Jobs be resized."""
    with running_cluster(tmp_path_factory.mktemp("elastic"), "--feature-gates", "ElasticJobSet=true") as cluster:
        cluster.require_pod_networks()
        yield cluster


@pytest.fixture
def cluster(elastic_cluster: Cluster) -> Iterator[Cluster]:
    """An empty namespace with the script, a volume, and the elastic runtime that we ship for one to three nodes."""
    runtime = yaml.safe_load((CONFIG / "runtimes" / "torch_distributed_elastic.yaml").read_text())
    runtime["kind"], runtime["metadata"]["name"] = "TrainingRuntime", "elastic"
    # As a slow machine may need more restarts than things happen here.
    runtime["spec"]["mlPolicy"]["torch"]["elasticPolicy"] |= {"maxNodes": 3, "maxRestarts": 20}
    script = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "script"}, "data": {"train.py": TRAIN}}
    with elastic_cluster.in_namespace() as own:
        own.apply(runtime, script, STATE)
        yield own


def start(cluster: Cluster, *, nodes: int, goal: list[int]) -> str:
    """Start a training that is over when it has had these sizes; returns what marks its processes."""
    marker = uuid.uuid4().hex
    job = train_job("demo", "", nodes=nodes, runtime="elastic")
    job["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
    job["spec"]["trainer"] |= {
        "command": ["torchrun", "train.py", marker, *map(str, goal)],
        "env": [{"name": "PET_RDZV_CONF", "value": RENDEZVOUS}],
    }
    mounts = {"script": "/workspace", "state": "/state"}
    job["spec"]["podSpecOverrides"] = [
        {
            "targetJobs": [{"name": "node"}],
            "containers": [
                {"name": "trainer", "volumeMounts": [{"name": name, "mountPath": at} for name, at in mounts.items()]}
            ],
            "volumes": [
                {"name": "script", "configMap": {"name": "script"}},
                {"name": "state", "persistentVolumeClaim": {"claimName": "state"}},
            ],
        }
    ]
    cluster.apply(job)
    return marker


def starts(cluster: Cluster) -> list[str]:
    """What the worker of the first node has said since its pod is there, one line for each of its starts."""
    selector = "batch.kubernetes.io/job-completion-index=0"
    text = cluster.kubectl("logs", "-l", selector, "--tail=-1", check=False).stdout
    return [line for line in text.splitlines() if line.startswith("rank 0 of")]


def wait_for_start(cluster: Cluster, size: int, *, after: int = 0) -> None:
    """Wait until the training has been started with this number of nodes, more often than it had been."""

    def started() -> bool:
        return f"rank 0 of {size}" in starts(cluster)[after:]

    until(started, lambda: f"{size} nodes train; so far: {starts(cluster)}", timeout=TIMEOUT)


def processes_of(marker: str) -> list[TrainingProcess]:
    """The processes of a training."""
    found = []
    for pid in with_argument(marker):
        try:
            environment = Path(f"/proc/{pid}/environ").read_text()
        except OSError:  # it has ended
            continue
        variables = dict(entry.partition("=")[::2] for entry in environment.split("\0") if entry)
        if node := variables.get("JOB_COMPLETION_INDEX"):
            found.append(TrainingProcess(pid, node, is_worker="LOCAL_RANK" in variables))
    return found


def pid_of(marker: str, *, node: str, is_worker: bool) -> int:
    """The only process of this kind on a node, once there is no other: one that forks is two until the other execs."""

    def only() -> int | None:
        found = [each.pid for each in processes_of(marker) if (each.node, each.is_worker) == (node, is_worker)]
        return found[0] if len(found) == 1 else None

    return until(only, f"node {node} has one process of this kind", timeout=TIMEOUT)


def scale(cluster: Cluster, nodes: int) -> None:
    cluster.kubectl("scale", "trainjob/demo", f"--replicas={nodes}")


def test_a_first_node_that_does_not_know_its_name() -> None:
    """The first node keeps the store of all even while DNS does not tell whose name is in the endpoint."""
    command = [sys.executable, "-c", FIRST_NODE, RENDEZVOUS_CONFIGURATION]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.stdout == "keeps the store\n", result.stderr


def test_scaling(cluster: Cluster) -> None:
    """A training goes from one node to three and down to two, and completes as if nothing had happened."""
    start(cluster, nodes=1, goal=[1, 3, 2])
    wait_for_start(cluster, 1)

    scale(cluster, 3)
    wait_for_start(cluster, 3)
    shown: dict[str, Any] = (cluster.get("trainjob", "demo") or {})["status"]["scale"]
    assert (shown["nodes"], shown["minNodes"], shown["maxNodes"]) == (3, 1, 3)

    refused = cluster.kubectl("scale", "trainjob/demo", "--replicas=4", check=False)
    assert "must be between minNodes and maxNodes" in refused.stderr

    before = len(starts(cluster))
    scale(cluster, 2)
    wait_for_start(cluster, 2, after=before)
    cluster.complete("demo", TIMEOUT)
    (jobset,) = cluster.list("jobset")
    assert jobset["status"].get("restarts", 0) == 0


def test_progress_goes_on(cluster: Cluster) -> None:
    """The followed pod reports whatever rank it has at the moment, and goes on from the checkpoint."""
    script, volume, job = yaml.safe_load_all(EXAMPLE.read_text())
    name = job["metadata"]["name"]
    job["spec"]["runtimeRef"] = {"kind": "TrainingRuntime", "name": "elastic"}
    job["spec"]["trainer"] |= {
        "command": ["bash", "-c", LAST_IS_FIRST],
        "env": [{"name": "PET_RDZV_CONF", "value": RENDEZVOUS}, {"name": "EPOCHS", "value": "1000000"}],
    }
    cluster.apply(script, volume, job)

    def log() -> str:
        return cluster.kubectl("logs", "-l", "batch.kubernetes.io/job-completion-index=0", "--tail=-1").stdout

    def shown(nodes: int) -> dict[str, Any] | None:
        status = progress(cluster, name)
        return status if (status.get("trainMetrics") or {}).get("processes") == str(nodes) else None

    def now() -> str:
        return f"progress of other nodes is shown: {progress(cluster, name)}"

    for nodes in (1, 3, 2):
        cluster.kubectl("scale", f"trainjob/{name}", f"--replicas={nodes}")
        until(partial(shown, nodes), now, timeout=TIMEOUT)
        assert f"rank {nodes - 1} of {nodes} goes on" in log()

    reported = [json.loads(line.removeprefix(TAG)) for line in log().splitlines() if line.startswith(TAG)]
    epochs = [message["currentEpoch"] for message in reported]
    assert all(after >= before - 1 for before, after in pairwise(epochs)), epochs
    assert epochs[-1] > 3


def test_processes_that_are_killed(cluster: Cluster) -> None:
    """A worker is started again where it was; a node whose torchrun is killed is replaced, and joins the other."""
    marker = start(cluster, nodes=2, goal=[2, 3])
    wait_for_start(cluster, 2)
    pods = {pod["metadata"]["uid"] for pod in cluster.list("pod")}

    before = len(starts(cluster))
    os.kill(pid_of(marker, node="1", is_worker=True), signal.SIGKILL)
    wait_for_start(cluster, 2, after=before)
    assert {pod["metadata"]["uid"] for pod in cluster.list("pod")} == pods

    before = len(starts(cluster))
    os.kill(pid_of(marker, node="1", is_worker=False), signal.SIGKILL)
    wait_for_start(cluster, 2, after=before)
    assert len({pod["metadata"]["uid"] for pod in cluster.list("pod")} - pods) == 1

    scaled = cluster.trainer("scale", "demo", "3")
    assert scaled.stdout == "trainjob.trainer.kubeflow.org/demo scaled to 3 nodes\n", scaled.stderr
    cluster.complete("demo", TIMEOUT)
    (jobset,) = cluster.list("jobset")
    assert jobset["status"].get("restarts", 0) == 0


def test_autoscaler(cluster: Cluster) -> None:
    """A TrainJob that names no nodes and was there before its runtime gets the number that its autoscaler changes.

    The autoscaler is there while the TrainJob is not suspended, and comes back when it is deleted.
    """
    runtime = yaml.safe_load((CONFIG / "runtimes" / "torch_distributed_elastic.yaml").read_text())
    runtime |= {"kind": "TrainingRuntime", "metadata": {"name": "autoscaled"}}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    runtime["spec"]["mlPolicy"]["torch"]["elasticPolicy"]["metrics"] = [{"type": "Resource", "resource": cpu}]
    reference = {"kind": "TrainingRuntime", "name": "autoscaled"}
    job = train_job("demo", "import time; time.sleep(60)", runtimeRef=reference)
    del job["spec"]["trainer"]["numNodes"]
    cluster.apply(job)
    cluster.wait_for_state("demo", "Blocked")
    cluster.apply(runtime)
    first = until(lambda: cluster.get("hpa", "demo"), "there is an autoscaler")
    assert (first["spec"]["minReplicas"], first["spec"]["maxReplicas"]) == (1, 4)
    assert first["spec"]["scaleTargetRef"]["kind"] == "TrainJob"
    until(lambda: (cluster.get("trainjob", "demo") or {})["spec"]["trainer"].get("numNodes") == 1, "nodes are stated")

    def another() -> bool:
        found = cluster.get("hpa", "demo")
        return found is not None and found["metadata"]["uid"] != first["metadata"]["uid"]

    cluster.kubectl("delete", "hpa", "demo")
    until(another, "there is another autoscaler")
    cluster.kubectl("annotate", "hpa", "demo", "devcluster.trainer/metric-cpu=160%")
    until(lambda: len(cluster.list("pod")) == 2, "the autoscaler has added a node")
    cluster.suspend("demo")
    until(lambda: cluster.get("hpa", "demo") is None, "the autoscaler is gone")
