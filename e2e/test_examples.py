"""Examples with their real frameworks, which the dev cluster has from this environment: nodes and processes meet."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster
from e2e.prerequisites import needs_module
from e2e.progress_view import wait_for_progress

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def _frameworks(cluster: Cluster) -> None:
    """Pods have them, and listen on the same port."""
    cluster.require_local("the framework and scikit-learn")
    cluster.require_pod_networks()


@pytest.mark.parametrize(
    ("framework", "trainer", "line", "processes"),
    [
        pytest.param("jax", {"numNodes": 3}, r"^node (\d) of 3: 1 local of 3 devices$", "0 1 2", id="jax-nodes"),
        pytest.param(
            "jax", {"numProcPerNode": 2}, r"^node (\d) of 4: 1 local of 4 devices$", "0 1 2 3", id="jax-processes"
        ),
        pytest.param("paddle", {}, r"rank (\d) of 2", "0 1", id="paddle-nodes"),
        pytest.param(  # a node's log has that of its first process
            "paddle", {"numNodes": 1, "numProcPerNode": 2}, r"rank (\d) of 2", "0", id="paddle-processes"
        ),
        pytest.param("tensorflow", {}, r"^node (\d) of 2$", "0 1", id="tensorflow"),
        pytest.param("xgboost", {}, r"worker (\d of 2 on node \d)", "0 of 2 on node 0 1 of 2 on node 1", id="xgboost"),
        pytest.param("xgboost", {"numProcPerNode": 2}, r"worker (\d) of 4", "0 1 2 3", id="xgboost-processes"),
    ],
)
def test_digits(cluster: Cluster, framework: str, trainer: dict[str, Any], line: str, processes: str) -> None:
    """All processes find each other and together learn to read nine of ten digits."""
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed: make nightly installs it")
    name = f"{framework}-digits"
    script, job = yaml.safe_load_all((ROOT / "examples" / name / "trainjob.yaml").read_text())
    job["spec"]["trainer"] |= trainer
    cluster.apply(script, job)

    cluster.complete(name, timeout=240)

    log = cluster.log(name)
    # The launcher of Paddle writes into the same log, not always whole lines.
    assert " ".join(sorted(set(re.findall(line, log, re.MULTILINE)))) == processes, log
    (accuracy,) = re.findall(r"test accuracy: ([\d.]+) %", log)
    assert float(accuracy) > 90
    assert len(set(re.findall(r"worker \d has model (\w+)", log))) == (framework == "xgboost"), "all have one model"


@needs_module("tensorflow")
def test_parameter_servers(cluster: Cluster) -> None:
    """The steps that a chief gives to two workers are counted on the server, and its end is that of the training."""
    job = yaml.safe_load((ROOT / "config" / "samples" / "tensorflow_parameter_server.yaml").read_text())
    targets = [{"name": name} for name in ("node", "chief", "ps")]
    mount = {"name": "trainer", "volumeMounts": [{"name": "work", "mountPath": "/workspace"}]}
    volumes = [{"name": "work", "emptyDir": {}}]
    job["spec"]["podSpecOverrides"] = [{"targetJobs": targets, "containers": [mount], "volumes": volumes}]
    cluster.apply(job)
    name = job["metadata"]["name"]

    cluster.complete(name, timeout=240)

    log = cluster.log(name, job="chief")
    assert "chief 0 of 1" in log
    assert re.search(r"steps: 10 on /job:ps/replica:0/task:0", log)


@needs_module("transformers")
def test_transformers(cluster: Cluster) -> None:
    """A language model trains on two nodes; the TrainJob shows its progress to the end, and its metrics."""
    cluster.apply(*yaml.safe_load_all((ROOT / "examples" / "transformers-tiny" / "trainjob.yaml").read_text()))
    cluster.complete("transformers-tiny", timeout=240)
    assert cluster.log("transformers-tiny").count("test accuracy") == 1, "the first of two nodes prints it"
    # State and progress are written by two controllers that do not wait for each other.
    status = wait_for_progress(cluster, "transformers-tiny", progressPercentage=100)
    assert (status["currentStep"], status["currentEpoch"]) == (64, 4)
    assert (status["totalSteps"], status["totalEpochs"]) == (64, 4)
    assert {"loss", "learning_rate"} <= set(status["trainMetrics"])
    assert float(status["evalMetrics"]["eval_accuracy"]) > 0.8
