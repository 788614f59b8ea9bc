"""The unmodified SDK of the Training Operator, `kubeflow-training` 1.9, with the jobs that this manager serves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from e2e.conftest import running_cluster
from e2e.kubectl import BIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.cluster import Cluster

REPOSITORY = Path(__file__).parents[1]
SDK = BIN.parent / "training-sdk"

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="needs a dev cluster of its own that serves v1 jobs"),
    pytest.mark.skipif(not SDK.is_dir(), reason="the SDK is not installed: make .venv/.training-sdk"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A dev cluster whose manager serves v1 jobs."""
    with running_cluster(tmp_path_factory.mktemp("v1-sdk"), serves_v1=True) as cluster:
        yield cluster


def answer(cluster: Cluster, scenario: str, gate: Path) -> Any:
    """What the SDK has answered in a scenario, in a namespace of its own."""
    namespace = f"sdk-{scenario.replace('_', '-')}"
    cluster.kubectl("create", "namespace", namespace)
    environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig), "PYTHONPATH": f"{SDK}:{REPOSITORY}"}
    command = [sys.executable, "-m", "e2e.training_sdk.scenarios", namespace, scenario, str(gate)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_pytorch_job(cluster: Cluster, tmp_path: Path) -> None:
    """The SDK makes a PyTorchJob, waits for its end, finds its pods by role and index, and reads their logs."""
    found = answer(cluster, "by_hand", tmp_path)
    assert (found["created"], found["ran"], found["succeeded"], found["running"]) == (True, True, True, False)
    assert found["conditions"] == ["Created", "Running", "Succeeded"]
    assert found["completed"]
    assert found["listed"] == ["hand"]
    assert found["master"] == ["rank 0 of 3\n"]
    assert found["all"] == [f"rank {rank} of 3\n" for rank in range(3)]
    assert found["second"] == ["rank 2 of 3\n"]


def test_jax_job(cluster: Cluster, tmp_path: Path) -> None:
    """The same of a JAXJob, whose first worker leads."""
    found = answer(cluster, "jax", tmp_path)
    assert (found["created"], found["ran"], found["succeeded"], found["running"]) == (True, True, True, False)
    assert found["master"] == ["process 0 of 2\n"]
    assert found["second"] == ["process 1 of 2\n"]


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed: make e2e installs it")
def test_function(cluster: Cluster, tmp_path: Path) -> None:
    """A function of the user trains on two workers, which torchrun has joined."""
    if not cluster.pod_network.startswith("netns"):
        pytest.skip(f"pods share one network on this machine ({cluster.pod_network})")
    found = answer(cluster, "function", tmp_path)
    assert found["succeeded"]
    assert "rank 0 of 2: 6.0" in "".join(found["master"])


def test_failure(cluster: Cluster, tmp_path: Path) -> None:
    """The SDK raises while it waits for a job that fails."""
    found = answer(cluster, "failing", tmp_path)
    assert "Failed" in found["raised"]
    assert found["failed"]
