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
from e2e.waiting import until

EXAMPLE = Path(__file__).parents[1] / "examples" / "flux-digits" / "trainjob.yaml"
FLUX = Path(__file__).parent / "stand_ins" / "flux" / "flux"

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(autouse=True)
def pods(cluster: Cluster) -> None:
    """Pods that have a stand-in for Flux, and networks of their own."""
    if not cluster.is_local:
        pytest.skip("pods of this cluster get Flux itself, which the stand-in would hide")
    if not cluster.pod_network.startswith("netns"):
        pytest.skip(f"pods share one network on this machine ({cluster.pod_network})")
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "stand-in", "namespace": cluster.namespace},
            "data": {"flux": FLUX.read_text()},
        }
    )


def flux_job(name: str, command: list[str], *, suspend: bool = False, processes: int = 1) -> dict[str, Any]:
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
            "suspend": suspend,
            "trainer": {"numNodes": 2, "numProcPerNode": processes} | ({"command": command} if command else {}),
            "podSpecOverrides": [override],
        },
    }


def log_of(cluster: Cluster, name: str, node: int = 0) -> list[str]:
    """What the container of a node has printed."""
    selector = f"jobset.sigs.k8s.io/jobset-name={name},batch.kubernetes.io/job-completion-index={node}"
    return cluster.kubectl("logs", "--selector", selector, "--tail=-1").stdout.splitlines()


def logs_of(cluster: Cluster, name: str) -> list[str]:
    """What all containers have printed, the init containers as well."""
    selector = f"jobset.sigs.k8s.io/jobset-name={name}"
    return cluster.kubectl("logs", "--selector", selector, "--tail=-1", "--all-containers").stdout.splitlines()


def certificate(cluster: Cluster) -> tuple[str, str]:
    """Name of the Secret of the namespace, and the secret key in it."""
    (secret,) = (each for each in cluster.list("secret") if "-flux-curve-" in each["metadata"]["name"])
    text = base64.b64decode(secret["data"]["curve.cert"]).decode()
    found = re.search(r'secret-key = "(\S{40})"', text)
    assert found is not None
    return secret["metadata"]["name"], found[1]


def test_processes_of_all_nodes(cluster: Cluster) -> None:
    """The lead runs the command on all nodes, word for word; their output is in its log, and the key is in none."""
    script = 'echo "process $FLUX_TASK_RANK of  $FLUX_JOB_SIZE on $(uname -n) $0"'
    cluster.apply(flux_job("ranks", ["bash", "-c", script, "a  word"], processes=2))
    state = cluster.wait_for_state("ranks", "Complete", "Failed", timeout=90)

    lines = log_of(cluster, "ranks")
    assert state == "Complete", lines
    assert sorted(line for line in lines if line.startswith("process")) == [
        "process 0 of  4 on ranks-node-0-0 a  word",
        "process 1 of  4 on ranks-node-0-0 a  word",
        "process 2 of  4 on ranks-node-0-1 a  word",
        "process 3 of  4 on ranks-node-0-1 a  word",
    ]
    _, key = certificate(cluster)
    assert key not in "\n".join(logs_of(cluster, "ranks"))
    assert key not in cluster.manager.log.read_text()


def test_ranks_of_brokers(cluster: Cluster) -> None:
    """A command in one line is split, and each node has a broker of its own."""
    cluster.apply(flux_job("brokers", ["flux getattr rank"]))
    assert cluster.wait_for_state("brokers", "Complete", "Failed", timeout=90) == "Complete"
    assert sorted(log_of(cluster, "brokers")) == ["0", "1", "flux: 2 brokers are online"]


def test_example(cluster: Cluster) -> None:
    """The processes of the example meet and learn together, and one of them reports its progress."""
    script, job = yaml.safe_load_all(EXAMPLE.read_text())
    stand_in = flux_job("any", [])["spec"]["podSpecOverrides"]
    job["spec"]["podSpecOverrides"] += stand_in
    cluster.apply(script, job)
    state = cluster.wait_for_state("flux-digits", "Complete", "Failed", timeout=150)

    lines = log_of(cluster, "flux-digits")
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

    job = cluster.get("trainjob", "broken")
    assert job is not None
    (failed,) = [each for each in job["status"]["conditions"] if each["type"] == "Failed"]
    assert "exited with code 3" in failed["message"], failed
    assert "no data on broken-node-0-1" in failed["message"], failed


def test_certificate_stays(cluster: Cluster) -> None:
    """The key is made once, also when the TrainJob is resumed; one that is lost meanwhile is made again."""
    cluster.apply(flux_job("keys", ["true"], suspend=True))
    cluster.wait_for_state("keys", "Suspended")
    before = certificate(cluster)
    cluster.kubectl("delete", "secret", before[0])
    cluster.kubectl("patch", "trainjob", "keys", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    assert cluster.wait_for_state("keys", "Complete", "Failed", timeout=90) == "Complete"
    again = certificate(cluster)
    assert again[0] == before[0]
    assert again[1] != before[1]


def test_no_command(cluster: Cluster) -> None:
    """Without a command the brokers stay, until the TrainJob is suspended, which ends them at once."""
    cluster.apply(flux_job("interactive", []))
    cluster.wait_for_state("interactive", "Running", timeout=60)
    until(lambda: "flux: 2 brokers are online" in log_of(cluster, "interactive"), "the brokers meet")
    key = certificate(cluster)

    cluster.kubectl("patch", "trainjob", "interactive", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    until(lambda: not cluster.list("pod"), "no pod waits for the end of its grace period", timeout=15)
    assert certificate(cluster) == key
