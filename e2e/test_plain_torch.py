"""Real PyTorch with `torch-distributed`: scripts started with and without torchrun."""

from __future__ import annotations

import re
from typing import Any

import pytest

from e2e.cluster import Cluster, train_job
from e2e.prerequisites import needs_module

pytestmark = [
    pytest.mark.timeout(180),
    needs_module("torch"),
]

SCRIPT = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} has {total.item():.0f}", flush=True)
dist.destroy_process_group()
"""


PLAIN = ["python", "-u", "-c", SCRIPT]
TORCHRUN = ["torchrun", "--no-python", *PLAIN]


@pytest.mark.parametrize(
    ("command", "trainer", "ranks"),
    [
        pytest.param(PLAIN, {}, 2, id="plain"),
        pytest.param(TORCHRUN, {}, 2, id="torchrun"),
        pytest.param(TORCHRUN, {"numProcPerNode": 2}, 4, id="torchrun-several"),
        # `auto` starts two processes on the only node, whose variables for scripts say that there is one.
        pytest.param(
            TORCHRUN,
            {"numNodes": 1, "resourcesPerNode": {"requests": {"cpu": "1100m"}}},
            2,
            id="torchrun-auto",
        ),
    ],
)
def test_processes_meet(cluster: Cluster, command: list[str], trainer: Any, ranks: int) -> None:
    """All processes of all nodes are members of one group, each with a rank of its own."""
    cluster.require_local("PyTorch")
    job = train_job("meet", "", nodes=2, runtime="torch-distributed")
    del job["spec"]["trainer"]["image"]
    job["spec"]["trainer"] |= {"command": command, **trainer}
    cluster.apply(job)
    cluster.complete("meet")
    total = ranks * (ranks + 1) // 2
    expected = [f"rank {rank} of {ranks} has {total}" for rank in range(ranks)]
    assert sorted(re.findall(r"rank \d of \d has \d+", cluster.log("meet"))) == expected
