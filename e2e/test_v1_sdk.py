"""The unmodified SDK of the Training Operator, `kubeflow-training` 1.9, with the jobs that this manager serves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster import Cluster
from e2e.conftest import running_cluster
from e2e.kubectl import BIN
from e2e.mutating_webhook import mutating_webhook

REPOSITORY = Path(__file__).parents[1]
SDK = BIN.parent / "training-sdk"

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="needs a dev cluster of its own that serves v1 jobs"),
    pytest.mark.skipif(not SDK.is_dir(), reason="the SDK is not installed: make .venv/.training-sdk"),
]
KINDS = pytest.mark.parametrize("kind", ["PyTorchJob", "JAXJob"])
CALLS = {
    "create_job": "by_hand",
    "delete_job": "lifecycle",
    "get_job": "lifecycle",
    "get_job_conditions": "lifecycle",
    "get_job_logs": "lifecycle",
    "get_job_pod_names": "lifecycle",
    "get_job_pods": "lifecycle",
    "is_job_created": "lifecycle",
    "is_job_failed": "failing",
    "is_job_restarting": "restarting",
    "is_job_running": "lifecycle",
    "is_job_succeeded": "lifecycle",
    "list_jobs": "lifecycle",
    "train": "fine_tune",
    "update_job": "lifecycle",
    "wait_for_job_conditions": "lifecycle",
}
"""All public calls of the SDK's client, and the scenario that tries each."""
INITIALIZER, TRAINER = "storage-initializer", "trainer-huggingface"
STAND_INS = {
    INITIALIZER: """
import json, sys
from pathlib import Path
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
for kind in ("model", "dataset"):
    directory = Path("/workspace") / kind
    directory.mkdir()
    (directory / "fetched.json").write_text(options[f"--{kind}_provider_parameters"])
""",
    TRAINER: """
import json, os, sys
from pathlib import Path
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
fetched = [Path(options[f"--{kind}_dir"], "fetched.json") for kind in ("model", "dataset")]
model, dataset = (json.loads(path.read_text()) for path in fetched)
rank = "rank {RANK} of {WORLD_SIZE}".format_map(os.environ)
print(rank, model["model_uri"], dataset["repo_id"], json.loads(options["--lora_config"])["r"], flush=True)
""",
}
"""Scripts in place of those that the SDK's images start."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A dev cluster whose manager serves v1 jobs."""
    with running_cluster(tmp_path_factory.mktemp("v1-sdk"), serves_v1=True) as cluster:
        yield cluster


def answer(
    cluster: Cluster, scenario: str, directory: Path, kind: str = "PyTorchJob", *, has_images: bool = False
) -> Any:
    """What the SDK has answered in a scenario, in a namespace of its own.

    Args:
        cluster: any.
        scenario: its name.
        directory: an empty one.
        kind: of the jobs.
        has_images: whether containers with the SDK's images run something, see `STAND_INS`.
    """
    own = replace(cluster, namespace=f"{scenario}-{kind.lower()}".replace("_", "-"))
    cluster.kubectl("create", "namespace", own.namespace)
    gate = directory / "gate"
    gate.mkdir()
    environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig), "PYTHONPATH": f"{SDK}:{REPOSITORY}"}
    command = [sys.executable, "-m", "e2e.training_sdk.scenarios", own.namespace, scenario, kind, str(gate)]
    images = mutating_webhook(own, directory, "images", [("", "v1", "pods")], entry_points)
    with images if has_images else nullcontext():
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    assert {call for call, tried in CALLS.items() if tried == scenario} <= set(found["called"])
    return found


def entry_points(pod: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The commands of the SDK's images, which are not pulled here."""
    for field in ("initContainers", "containers"):
        for index, container in enumerate(pod["spec"].get(field) or []):
            image = container["image"].rsplit("/", 1)[-1]
            if image in STAND_INS and not container.get("command"):
                start = ["torchrun", "--no-python"] if image == TRAINER else []
                yield f"/spec/{field}/{index}/command", [*start, "python", "-c", STAND_INS[image]]


def test_calls(cluster: Cluster, tmp_path: Path) -> None:
    """Each public call is tried by a scenario."""
    assert answer(cluster, "calls", tmp_path)["public"] == sorted(CALLS)


@KINDS
def test_a_job_of_the_models(cluster: Cluster, kind: str, tmp_path: Path) -> None:
    """The SDK makes a job, waits for its end, finds its pods by role and index, and reads their logs."""
    found = answer(cluster, "by_hand", tmp_path, kind)
    assert (found["created"], found["ran"], found["succeeded"], found["running"]) == (True, True, True, False)
    assert found["conditions"] == ["Created", "Running", "Succeeded"]
    assert found["completed"]
    assert found["listed"] == ["hand"]
    assert found["master"] == ["rank 0 of 3\n"]
    assert found["all"] == [f"rank {rank} of 3\n" for rank in range(3)]
    assert found["second"] == [f"rank {2 if kind == 'PyTorchJob' else 1} of 3\n"]


@KINDS
def test_lifecycle(cluster: Cluster, kind: str, tmp_path: Path) -> None:
    """A job is suspended, changed, resumed, followed to its end and deleted; a running one cannot be changed."""
    found = answer(cluster, "lifecycle", tmp_path, kind)
    assert (found["timed_out"], found["pods_of_suspended"]) == (True, [])
    assert found["called_back"]
    assert found["is"] == ["created", "running"]
    assert (found["pods"], found["masters"]) == (2, 1)
    assert found["by_role"] == ([1, 1] if kind == "PyTorchJob" else [0, 2])
    assert found["by_index"] == ([1, 0, 0] if kind == "PyTorchJob" else [1, 1, 0])
    assert "image: Forbidden: cannot be changed while the job runs" in found["refused"]
    said = ["changed", "hello"] if kind == "PyTorchJob" else ["changed", "changed"]
    assert found["followed"] == said
    assert found["logs"] == [f"{line}\n" for line in said]
    assert set(found["events"]) == {"pod", kind.lower()}
    assert found["event"]
    assert found["ended"] == ["created", "succeeded"]
    assert (found["gone"], found["pods_left"]) == (True, [])


@KINDS
def test_restart(cluster: Cluster, kind: str, tmp_path: Path) -> None:
    """A job whose pod is made again is restarting until it runs again."""
    found = answer(cluster, "restarting", tmp_path, kind)
    assert found["restarting"] == ["created", "restarting"]
    assert found["running"] == ["created", "running"]
    assert found["ended"] == ["created", "succeeded"]


@KINDS
def test_failure(cluster: Cluster, kind: str, tmp_path: Path) -> None:
    """The SDK raises while it waits for a job that fails, unless that is what it waits for."""
    found = answer(cluster, "failing", tmp_path, kind)
    assert found["expected"]
    assert found["ended"] == ["created", "failed"]
    assert "Failed" in found["raised"]


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed: make nightly installs it")
def test_function(cluster: Cluster, tmp_path: Path) -> None:
    """A function of the user trains on two workers, which torchrun has joined."""
    if not cluster.pod_network.startswith("netns"):
        pytest.skip(f"pods share one network on this machine ({cluster.pod_network})")
    found = answer(cluster, "function", tmp_path)
    assert found["succeeded"]
    assert "rank 0 of 2: 6.0" in "".join(found["master"])


@pytest.mark.skipif(
    find_spec("peft") is None or find_spec("torch") is None, reason="peft is not installed: make nightly installs it"
)
def test_fine_tuning(cluster: Cluster, tmp_path: Path) -> None:
    """`train()` has the master fetch model and dataset, and torchrun joins it and the worker, with one volume."""
    if not cluster.pod_network.startswith("netns"):
        pytest.skip(f"pods share one network on this machine ({cluster.pod_network})")
    found = answer(cluster, "fine_tune", tmp_path, has_images=True)
    assert found["labels"] == {"team": "a"}
    assert found["claim"] == ["tune", "Bound", ["ReadWriteOnce", "ReadOnlyMany"]]
    assert found["logs"] == {
        "master": "rank 0 of 2 hf://demo/tiny demo/data 4\n",
        "worker": "rank 1 of 2 hf://demo/tiny demo/data 4\n",
    }
    (fetches,) = found["initializers"]["master"]
    assert found["initializers"]["worker"] == []
    assert (fetches["name"], fetches["image"]) == (INITIALIZER, f"ghcr.io/kubeflow/training-v1/{INITIALIZER}")
    assert fetches["env"]["HF_HOME"] == "/workspace/.cache"
    for (container,) in found["containers"]:
        assert (container["name"], container["image"]) == ("pytorch", f"ghcr.io/kubeflow/training-v1/{TRAINER}")
        expected = {"TOKENIZERS_PARALLELISM": "false", "PET_NNODES": "2", "PET_NPROC_PER_NODE": "1", "WORLD_SIZE": "2"}
        assert container["env"].items() >= expected.items()
