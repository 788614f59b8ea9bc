"""Kueue on a dev cluster whose manager serves v1 jobs: its webhook and its controller are played request by request.

The only node has a label and a taint, so that pods run where Kueue has said so, and nowhere else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster import Cluster
from e2e.conftest import running_cluster
from e2e.kubectl import Kubectl
from e2e.kueue import Flavor
from e2e.kueue_v1 import REPLICAS, V1Kueue
from e2e.kueue_webhooks import FLEET, MULTIKUEUE, QUEUE, v1_webhooks
from e2e.v1_jobs import conditions, jax_job, pytorch_job
from e2e.waiting import until

Object = dict[str, Any]

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="needs a dev cluster of its own that serves v1 jobs"),
]
SPOT = {"key": "capacity", "operator": "Equal", "value": "spot", "effect": "NoSchedule"}
OWN = {"key": "example.com/own", "operator": "Exists"}
HERE = Flavor({"capacity": "spot"}, (SPOT,))
ELSEWHERE = Flavor({"capacity": "reserved"}, (SPOT,))
PODSET, PRIORITY = "kueue.x-k8s.io/podset", "training"
SIZES = {"PyTorchJob": {"master": 1, "worker": 2}, "JAXJob": {"worker": 2}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A dev cluster with nodes that nobody uses by chance, and Kueue's webhook in one of its namespaces."""
    with running_cluster(tmp_path_factory.mktemp("kueue-v1"), serves_v1=True) as cluster:
        cluster.kubectl("label", "node", "laptop", "capacity=spot")
        cluster.kubectl("taint", "node", "laptop", "capacity=spot:NoSchedule")
        cluster.kubectl("create", "namespace", "team")
        cluster.kubectl("create", "priorityclass", PRIORITY, "--value=5")
        cluster.namespace = "team"
        with v1_webhooks(cluster, tmp_path_factory.mktemp("webhooks")):
            yield cluster


@pytest.fixture(params=[True, False], ids=["patches", "updates"])
def sends_patches(request: pytest.FixtureRequest) -> bool:
    """How Kueue writes, in different releases."""
    return bool(request.param)


@pytest.fixture(params=[*SIZES])
def kueue(request: pytest.FixtureRequest, cluster: Cluster, sends_patches: bool) -> V1Kueue:
    """Kueue's controller for a kind."""
    return V1Kueue(cluster, str(request.param), sends_patches=sends_patches)


def submit(kueue: V1Kueue, name: str, script: str, *, queue: str = "default", **policy: Any) -> Object:
    """What a user creates, and what the cluster has stored of it."""
    make = pytorch_job if kueue.kind == "PyTorchJob" else jax_job
    job = make(name, ["sh", "-c", script], 2, runPolicy=policy)
    job["metadata"]["labels"] = {QUEUE: queue}
    for replica in job["spec"][REPLICAS[kueue.kind]].values():
        replica["template"]["metadata"] = {"labels": {"team": "a"}}
        replica["template"]["spec"] |= {"priorityClassName": PRIORITY, "tolerations": [OWN]}
    stored: Object = json.loads(kueue.cluster.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(job)).stdout)
    return stored


def pods_of(cluster: Kubectl, name: str) -> list[Object]:
    """Its pods, found as the SDK finds them."""
    selector = f"training.kubeflow.org/job-name={name}"
    pods: list[Object] = json.loads(cluster.kubectl("get", "pods", "-l", selector, "-o", "json").stdout)["items"]
    return pods


def kinds_of(kueue: V1Kueue, name: str) -> list[str]:
    """The conditions of a job."""
    return conditions(kueue.cluster, kueue.kind.lower(), name)


def test_a_life_in_a_queue(kueue: V1Kueue, tmp_path: Path) -> None:
    """A job waits, runs where it has been placed, is preempted, waits as before, and runs to its end."""
    name, cluster = f"life-{kueue.kind.lower()}-{kueue.sends_patches:d}", kueue.cluster
    created = submit(kueue, name, f"test -e {tmp_path}/go || exec sleep 600")
    assert created["spec"]["runPolicy"]["suspend"] is True
    until(lambda: kinds_of(kueue, name) == ["Created", "Suspended"], "the job waits")
    waiting = kueue.pod_sets(name)
    assert {each.name: each.count for each in waiting} == SIZES[kueue.kind]
    assert kueue.priority_class(name) == PRIORITY
    assert cluster.get("trainjob", name) is None
    assert pods_of(cluster, name) == []
    assert not kueue.is_active(name)

    assert kueue.start(name, HERE) == ""
    until(lambda: kueue.are_pods_ready(name), "it runs")
    until(lambda: len(pods_of(cluster, name)) == sum(SIZES[kueue.kind].values()), "all its pods are there")
    assert kueue.is_active(name)
    found = dict.fromkeys(SIZES[kueue.kind], 0)
    for pod in pods_of(cluster, name):
        found[pod["metadata"]["labels"][PODSET]] += 1
        assert pod["metadata"]["labels"]["team"] == "a"
        assert pod["metadata"]["annotations"]["kueue.x-k8s.io/workload"] == "demo"
        assert pod["spec"]["nodeSelector"]["capacity"] == "spot"
        assert all(each in pod["spec"]["tolerations"] for each in (SPOT, OWN))
        assert pod["spec"]["priorityClassName"] == PRIORITY
    assert found == SIZES[kueue.kind]
    assert QUEUE not in (cluster.get("trainjob", name) or {})["metadata"].get("labels", {})
    assert kueue.finished(name) is None

    assert kueue.stop(name, waiting) == ""
    until(lambda: not kueue.is_active(name), "no pod is active")
    until(lambda: kinds_of(kueue, name) == ["Created", "!Running", "Suspended"], "it waits again")
    assert kueue.pod_sets(name) == waiting
    until(lambda: pods_of(cluster, name) == [], "its pods are gone")

    (tmp_path / "go").touch()
    assert kueue.start(name, HERE) == ""
    is_success, message = until(lambda: kueue.finished(name), "it is finished")
    assert is_success
    assert message.endswith("successfully completed.")
    assert not kueue.is_active(name)
    cluster.kubectl("delete", kueue.kind.lower(), name)


def test_another_place(kueue: V1Kueue) -> None:
    """A job whose nodes do not exist has no running pods and is active in no way; it can be placed elsewhere."""
    name, cluster = f"place-{kueue.kind.lower()}-{kueue.sends_patches:d}", kueue.cluster
    submit(kueue, name, "exit 0")
    waiting = kueue.pod_sets(name)
    assert kueue.start(name, ELSEWHERE) == ""
    until(lambda: len(pods_of(cluster, name)) == sum(SIZES[kueue.kind].values()), "its pods wait")
    assert not kueue.are_pods_ready(name)
    assert not kueue.is_active(name)
    assert kueue.stop(name, waiting) == ""
    assert kueue.start(name, HERE) == ""
    assert until(lambda: kueue.finished(name), "it is finished")[0]
    cluster.kubectl("delete", kueue.kind.lower(), name)


def test_a_failure(kueue: V1Kueue) -> None:
    """Kueue finds out that a job has failed, and why."""
    name = f"failure-{kueue.kind.lower()}-{kueue.sends_patches:d}"
    submit(kueue, name, "exit 4")
    assert kueue.start(name, HERE) == ""
    is_success, message = until(lambda: kueue.finished(name), "it is finished")
    assert not is_success
    assert "exited with code 4" in message
    kueue.cluster.kubectl("delete", kueue.kind.lower(), name)


def test_multikueue(kueue: V1Kueue) -> None:
    """Another cluster runs it; its status comes from there, and the manager here makes and writes nothing."""
    name, kind, cluster = f"remote-{kueue.kind.lower()}-{kueue.sends_patches:d}", kueue.kind.lower(), kueue.cluster
    created = submit(kueue, name, "exit 0", queue=FLEET)
    assert created["spec"]["runPolicy"]["managedBy"] == MULTIKUEUE
    status = {"conditions": [{"type": "Running", "status": "True", "reason": "there", "message": "it runs there"}]}
    cluster.kubectl("patch", kind, name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    resumed = json.dumps({"spec": {"runPolicy": {"suspend": False}}})
    cluster.kubectl("patch", kind, name, "--type=merge", "-p", resumed)
    later = f"later-{name}"
    submit(kueue, later, "exit 0")
    until(lambda: kinds_of(kueue, later) == ["Created", "Suspended"], "the manager has seen all this")
    found = json.loads(cluster.kubectl("get", kind, name, "-o", "json", "--show-managed-fields").stdout)
    assert found["status"] == status
    assert not any(each["manager"].startswith("trainer") for each in found["metadata"]["managedFields"])
    assert cluster.get("trainjob", name) is None
    cluster.kubectl("delete", kind, name, later)
