"""Flux with the runtime of config/runtimes, over real pods.

Debian has no Flux, so a stand-in reads what Flux would read: it finds its place in the list of hosts, listens on the
network device, and lets nobody in who lacks the key.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster

EXAMPLE = Path(__file__).parents[1] / "examples" / "flux-digits" / "trainjob.yaml"
FLUX = Path(__file__).parent / "stand_ins" / "flux" / "flux"

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(autouse=True)
def pods(cluster: Cluster) -> None:
    """Pods that have a stand-in for Flux, and networks of their own."""
    if not cluster.is_local:
        pytest.skip("pods of this cluster get Flux itself, which the stand-in would hide")
    cluster.require_pod_networks()
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "stand-in", "namespace": cluster.namespace},
            "data": {"flux": FLUX.read_text()},
        }
    )


def flux_job(name: str, command: list[str], *, processes: int = 1) -> dict[str, Any]:
    """A TrainJob of two nodes whose containers have the stand-in."""
    mount = {"name": "stand-in", "mountPath": "/usr/local/bin/flux", "subPath": "flux"}
    override = {
        "targetJobs": [{"name": "node"}],
        "volumes": [{"name": "stand-in", "configMap": {"name": "stand-in", "defaultMode": 0o755}}],
        "containers": [{"name": "trainer", "volumeMounts": [mount]}],
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": "flux-distributed"},
            "trainer": {"numNodes": 2, "numProcPerNode": processes} | {"command": command},
            "podSpecOverrides": [override],
        },
    }


def test_processes_of_all_nodes(cluster: Cluster) -> None:
    """The lead runs the command on all nodes, word for word; their output is in its log, and the key is in none."""
    script = 'echo "process $FLUX_TASK_RANK of  $FLUX_JOB_SIZE on $(uname -n) $0"'
    cluster.apply(flux_job("ranks", ["bash", "-c", script, "a  word"], processes=2))
    state = cluster.wait_for_state("ranks", "Complete", "Failed", timeout=90)

    lines = cluster.log("ranks", node="0").splitlines()
    assert state == "Complete", lines
    assert sorted(line for line in lines if line.startswith("process")) == [
        "process 0 of  4 on ranks-node-0-0 a  word",
        "process 1 of  4 on ranks-node-0-0 a  word",
        "process 2 of  4 on ranks-node-0-1 a  word",
        "process 3 of  4 on ranks-node-0-1 a  word",
    ]
    (secret,) = (each for each in cluster.list("secret") if "-flux-curve-" in each["metadata"]["name"])
    found = re.search(r'secret-key = "(\S{40})"', base64.b64decode(secret["data"]["curve.cert"]).decode())
    assert found is not None
    selector = "jobset.sigs.k8s.io/jobset-name=ranks"
    assert found[1] not in cluster.kubectl("logs", "-l", selector, "--tail=-1", "--all-containers").stdout
    assert found[1] not in cluster.manager.log.read_text()


def test_example(cluster: Cluster) -> None:
    """The processes of the example meet and learn together, and one of them reports its progress."""
    script, job = yaml.safe_load_all(EXAMPLE.read_text())
    stand_in = flux_job("any", [])["spec"]["podSpecOverrides"]
    job["spec"]["podSpecOverrides"] += stand_in
    cluster.apply(script, job)
    state = cluster.wait_for_state("flux-digits", "Complete", "Failed", timeout=150)

    lines = cluster.log("flux-digits", node="0").splitlines()
    assert state == "Complete", lines
    assert sorted(line for line in lines if line.startswith("rank")) == [
        f"rank {rank} of 4 on flux-digits-node-0-{rank // 2}" for rank in range(4)
    ]
    (accuracy,) = re.findall(r"test accuracy: ([\d.]+) %", "\n".join(lines))
    assert float(accuracy) > 90
    steps = [line for line in lines if '"currentStep":200' in line]
    assert len(steps) <= 2, "one process reports its last step, and what it has learnt"
    done = cluster.get("trainjob", "flux-digits")
    assert done is not None
    assert done["status"]["trainerStatus"]["progressPercentage"] == 100


def test_failure(cluster: Cluster) -> None:
    """A process that fails on any node fails the TrainJob with its exit code and its last words."""
    script = 'test "$FLUX_TASK_RANK" = 0 || { echo "no data on $(uname -n)"; exit 3; }'
    cluster.apply(flux_job("broken", ["bash", "-c", script]))
    assert cluster.wait_for_state("broken", "Complete", "Failed", timeout=90) == "Failed"

    failed = cluster.condition("broken", "Failed")
    assert "exited with code 3" in failed["message"], failed
    assert "no data on broken-node-0-1" in failed["message"], failed
