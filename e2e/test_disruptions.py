"""Disruptions and failures with the shipped runtimes: which of them start a training again, and which count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from e2e.cluster import Cluster, train_job
from e2e.waiting import until

pytestmark = pytest.mark.timeout(180)

RESTART = "jobset.sigs.k8s.io/restart-attempt"

TOGETHER = """
import os, socket, time

if os.environ["ATTEMPT"] != "0":
    raise SystemExit
count, port = int(os.environ["PET_NNODES"]), int(os.environ["PET_MASTER_PORT"])
if os.environ["PET_NODE_RANK"] == "0":
    server = socket.create_server(("", port))
    peers = [server.accept()[0] for _ in range(count - 1)]
else:
    while True:
        try:
            peers = [socket.create_connection((os.environ["PET_MASTER_ADDR"], port))]
            break
        except OSError:
            time.sleep(0.2)
for peer in peers:
    peer.settimeout(None)
    peer.sendall(b"x")
    assert peer.recv(1) == b"x"
print("together", flush=True)
for peer in peers:
    if not peer.recv(1):
        raise ConnectionError("a peer has gone")
"""
"""Nodes that end with an error as soon as they lose one of them, and end well once they were started again."""


def training(name: str, script: str, *, nodes: int = 1, **spec: Any) -> dict[str, Any]:
    """A TrainJob of a shipped runtime whose nodes know which attempt they are."""
    job = train_job(name, script, nodes=nodes, runtime="torch-distributed", **spec)
    source = {"fieldRef": {"fieldPath": f"metadata.annotations['{RESTART}']"}}
    job["spec"]["trainer"]["env"] = [{"name": "ATTEMPT", "valueFrom": source}]
    return job


def test_an_eviction_is_no_failure(cluster: Cluster) -> None:
    """All nodes start again when one is evicted, although the other one fails with it, and no restart is used up."""
    cluster.require_pod_networks()
    cluster.apply(training("demo", TOGETHER, nodes=2))
    until(lambda: cluster.log("demo").count("together") == 2, "the nodes are together")
    evicted = next(pod["metadata"]["name"] for pod in cluster.list("pod") if "-0-1-" in pod["metadata"]["name"])
    cluster.evict(evicted)
    job = cluster.complete("demo")
    assert cluster.restarts("demo") == (1, 0)
    assert job["status"]["restarts"] == {"disruptions": 1, "failures": 0, "maxRestarts": 0}
    assert "1 disruption" in cluster.trainer("get", "demo").stdout


def test_an_error_of_the_program_is_the_last(cluster: Cluster) -> None:
    """Nothing is tried again unless somebody has said so."""
    cluster.apply(training("demo", "raise SystemExit(3)"))
    cluster.wait_for_condition("demo", "Failed")
    assert cluster.restarts("demo") == (0, 0)


def test_restarts_that_somebody_has_asked_for(cluster: Cluster, tmp_path: Path) -> None:
    """`trainer run --max-restarts 1` starts it again once, and its second failure is the last."""
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit(3)")
    options = ("--name", "demo", "--runtime", "torch-distributed", "--max-restarts", "1")
    result = cluster.trainer("run", str(script), *options)
    assert result.returncode == 1, result.stderr
    assert cluster.restarts("demo") == (1, 1)
    assert "it was started again after 1 failure of 1" in cluster.condition("demo", "Failed")["message"]
