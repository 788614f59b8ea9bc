"""Trainings of a shipped runtime in gangs, since the manager says so (`gangScheduling: auto`)."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from e2e.cluster import Cluster, train_job
from e2e.gangs.pod_groups import group_of, min_count, pod_group, pods_of
from e2e.manager import reconfigured
from e2e.waiting import until

pytestmark = pytest.mark.timeout(240)

TRAIN = """
import os, sys
import torch
import torch.distributed as dist

torch.manual_seed(0)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
x = torch.linspace(-1, 1, 16).reshape(-1, 1)[dist.get_rank() :: dist.get_world_size()]
for _ in range(100):
    loss = ((model(x) - (3 * x - 1)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weight = model.module.weight.item()
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: weight {weight:.2f}\\n", end="", flush=True)
dist.barrier()
sys.stdout.flush()
os._exit(0)
"""


@pytest.fixture(scope="module")
def everywhere(real_pods: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster, with a manager that has all trainings of runtimes without a policy in gangs."""
    with reconfigured(real_pods, tmp_path_factory.mktemp("auto"), gangScheduling="auto"):
        yield real_pods


@pytest.fixture
def cluster(everywhere: Cluster) -> Iterator[Cluster]:
    """An empty namespace of it."""
    with everywhere.in_namespace() as own:
        yield own


def test_a_shipped_runtime(cluster: Cluster) -> None:
    """Its pods are a gang without a word about it in runtime and TrainJob."""
    cluster.apply(train_job("demo", "import time; time.sleep(2)", nodes=2, runtime="torch-distributed"))
    group = until(lambda: pod_group(cluster, "demo"), "it has a PodGroup")
    assert min_count(group) == 2
    until(lambda: len(pods_of(cluster, "demo")) == 2, "it has pods")
    assert {group_of(pod) for pod in pods_of(cluster, "demo")} == {group["metadata"]["name"]}
    cluster.complete("demo")


def test_pytorch(cluster: Cluster, tmp_path: Path) -> None:
    """Two nodes of a gang meet, and learn the same."""
    cluster.require_local("PyTorch")
    cluster.require_pod_networks()
    if find_spec("torch") is None:
        pytest.skip("PyTorch is not installed: make nightly installs it")
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    job = train_job("demo", "", nodes=2, runtime="torch-distributed")
    job["spec"]["trainer"] |= {"command": ["torchrun", str(script)], "numProcPerNode": 1}
    cluster.apply(job)
    group = until(lambda: pod_group(cluster, "demo"), "it has a PodGroup")
    assert min_count(group) == 2
    cluster.complete("demo")
    lines = sorted(line for line in cluster.log("demo").splitlines() if line.startswith("rank"))
    assert lines == [f"rank {rank} of 2: weight 3.00" for rank in range(2)]
