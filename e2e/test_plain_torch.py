"""Real PyTorch with `torch-distributed`: scripts started with and without torchrun."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

import pytest

from e2e.cluster import Cluster

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed: make nightly installs it"),
]

SCRIPT = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} has {total.item():.0f}", flush=True)
dist.destroy_process_group()
"""


def train_job(name: str, command: list[str], **trainer: Any) -> dict[str, Any]:
    """A TrainJob that runs this command, on two nodes unless `trainer` says otherwise."""
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {"numNodes": 2, "command": command} | trainer,
            # The dev cluster has no image whose directory this is.
            "podSpecOverrides": [
                {
                    "targetJobs": [{"name": "node"}],
                    "containers": [{"name": "trainer", "volumeMounts": [{"name": "work", "mountPath": "/workspace"}]}],
                    "volumes": [{"name": "work", "configMap": {"name": "all-reduce"}}],
                }
            ],
        },
    }


CODE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "all-reduce"},
    "data": {"train.py": SCRIPT},
}


@pytest.mark.parametrize(
    ("command", "trainer", "ranks"),
    [
        pytest.param(["python", "train.py"], {}, 2, id="plain"),
        pytest.param(["torchrun", "train.py"], {}, 2, id="torchrun"),
        pytest.param(["torchrun", "train.py"], {"numProcPerNode": 2}, 4, id="torchrun-several"),
        # `auto` starts two processes on the only node, whose variables for scripts say that there is one.
        pytest.param(
            ["torchrun", "train.py"],
            {"numNodes": 1, "resourcesPerNode": {"requests": {"cpu": "1100m"}}},
            2,
            id="torchrun-auto",
        ),
    ],
)
def test_processes_meet(cluster: Cluster, command: list[str], trainer: Any, ranks: int) -> None:
    """All processes of all nodes are members of one group, each with a rank of its own."""
    if not cluster.is_local:
        pytest.skip("needs an image with PyTorch, which the runtime names but this cluster may have to pull")
    name = "meet"
    cluster.apply(CODE, train_job(name, command, **trainer))

    state = cluster.wait_for_state(name, "Complete", "Failed", timeout=120)

    log = cluster.kubectl("logs", "--selector", f"jobset.sigs.k8s.io/jobset-name={name}", "--tail=-1").stdout
    assert state == "Complete", log
    total = ranks * (ranks + 1) // 2
    expected = [f"rank {rank} of {ranks} has {total}" for rank in range(ranks)]
    assert sorted(re.findall(r"rank \d of \d has \d+", log)) == expected
