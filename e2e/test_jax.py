"""Distributed JAX: real `jax.distributed`, on several nodes and with several processes on each."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster, train_job

EXAMPLE = Path(__file__).parents[1] / "examples" / "jax-digits" / "trainjob.yaml"
FAILING = """
import os, sys, time
import jax
jax.distributed.initialize(
    num_processes=int(os.environ["JAX_NUM_PROCESSES"]), process_id=int(os.environ["JAX_PROCESS_ID"])
)
if jax.process_index() == 1:
    print("out of luck", flush=True)
    os._exit(9)
time.sleep(60)
"""

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="needs JAX and scikit-learn in the image of the pods"),
    pytest.mark.timeout(180),
]


def example(**trainer: Any) -> list[dict[str, Any]]:
    """The objects of the example with other settings of its trainer; half the epochs are enough here."""
    text = EXAMPLE.read_text()
    assert "EPOCHS = 60" in text
    objects: list[dict[str, Any]] = list(yaml.safe_load_all(text.replace("EPOCHS = 60", "EPOCHS = 20")))
    for obj in objects:
        if obj["kind"] == "TrainJob":
            obj["spec"]["trainer"] |= trainer
    return objects


def log(cluster: Cluster) -> str:
    """What all pods of the namespace have written."""
    selector = "jobset.sigs.k8s.io/jobset-name"
    return cluster.kubectl("logs", "-l", selector, "--tail=-1", "--max-log-requests=10").stdout


@pytest.mark.parametrize(
    ("trainer", "processes"),
    [
        pytest.param({"numNodes": 3}, 3, id="3-nodes"),
        pytest.param({"numNodes": 2, "numProcPerNode": 2}, 4, id="2-nodes-with-2-processes"),
    ],
)
def test_digits(cluster: Cluster, trainer: dict[str, Any], processes: int) -> None:
    """All processes find each other, each has a device and a number of its own, and together they learn to read."""
    cluster.apply(*example(**trainer))

    assert cluster.wait_for_state("jax-digits", "Complete", "Failed", timeout=150) == "Complete", log(cluster)

    assert len(cluster.list("pod")) == trainer["numNodes"]
    lines = log(cluster).splitlines()
    for number in range(processes):
        assert f"node {number} of {processes}: 1 local of {processes} devices" in lines
    [accuracy] = [match for match in (re.fullmatch(r"test accuracy: ([\d.]+) %", line) for line in lines) if match]
    assert float(accuracy[1]) > 85


def test_a_process_that_fails_fails_its_node(cluster: Cluster) -> None:
    """When one of the processes of a node ends, so does the node, with its exit code; JAX alone would wait for long."""
    job = train_job("unlucky", FAILING, runtime="jax-distributed")
    job["spec"]["trainer"]["numProcPerNode"] = 3
    cluster.apply(job)

    cluster.wait_for_condition("unlucky", "Failed")

    [pod] = cluster.list("pod")
    [status] = pod["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == 9
    [failed] = [c for c in (cluster.get("trainjob", "unlucky") or {})["status"]["conditions"] if c["type"] == "Failed"]
    assert "jax-launcher: JAX process 1 failed with exit code 9" in failed["message"]
