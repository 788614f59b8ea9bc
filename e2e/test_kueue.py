"""Kueue on `trainer up --api-version v1alpha1`: its webhook and its controller are played request by request.

The only node has a label and a taint, so that pods run where Kueue has said so, and nowhere else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.home import running_home
from e2e.kubectl import Kubectl
from e2e.kueue import CONFLICT, ENTRY, QUEUE, Flavor, Kueue, webhook
from e2e.kueue_pod_sets import STEP, pod_sets_of_jobset
from e2e.waiting import until

Object = dict[str, Any]

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(300),
]
API_VERSION = "trainer.kubeflow.org/v1alpha1"
SPOT = {"key": "capacity", "operator": "Equal", "value": "spot", "effect": "NoSchedule"}
OWN = {"key": "example.com/own", "operator": "Exists"}
HERE = Flavor({"capacity": "spot"}, (SPOT, OWN))
PODSET = "kueue.x-k8s.io/podset"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A namespace whose TrainJobs Kueue manages, with a runtime of a Job that loads something, and of the nodes."""
    with running_home(tmp_path_factory.mktemp("home"), "--api-version", "v1alpha1") as home:
        cluster = Kubectl(home.kubeconfig, namespace="team")
        cluster.kubectl("label", "node", "laptop", "capacity=spot")
        cluster.kubectl("taint", "node", "laptop", "capacity=spot:NoSchedule")
        objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}, runtime()]
        cluster.kubectl("apply", "-f", "-", stdin=yaml.dump_all(objects, Dumper=yaml.CSafeDumper))
        with webhook(cluster, tmp_path_factory.mktemp("webhooks")):
            yield cluster


def runtime() -> Object:
    """A TrainingRuntime."""
    loader = {"containers": [{"name": "loader", "image": "any", "command": ["true"]}]}
    node = {
        "containers": [{"name": "node", "image": "any", "resources": {"requests": {"memory": "32Mi"}}}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [OWN],
    }
    jobs = [
        {"name": "loader", "template": {"spec": {"template": {"spec": loader}}}},
        {"name": "node", "template": {"metadata": {"labels": {STEP: "trainer"}}, "spec": {"template": {"spec": node}}}},
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainingRuntime",
        "metadata": {"name": "own", "namespace": "team"},
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": jobs}}},
    }


@pytest.fixture(params=[True, False], ids=["patches", "updates"])
def kueue(request: pytest.FixtureRequest, team: Kubectl) -> Kueue:
    """Kueue, as different releases of it write."""
    return Kueue(team, sends_patches=request.param)


def submit(cluster: Kubectl, name: str, script: str) -> Object:
    """What a user creates, with members that say nothing, and what the cluster has stored of it."""
    pods = {"metadata": {"labels": {}, "annotations": {"a": "b"}}, "spec": {"nodeSelector": {}, "tolerations": []}}
    changes = {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": pods}}}]}
    obj = {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": {"name": name, "labels": {QUEUE: "default"}},
        "spec": {
            "runtimeRef": {"name": "own", "kind": "TrainingRuntime"},
            "trainer": {
                "numNodes": 2,
                "command": ["sh", "-c", script],
                "resourcesPerNode": {"requests": {"cpu": "100m"}},
            },
            "runtimePatches": [{"manager": "example.com/me", "trainingRuntimeSpec": {"template": {"spec": changes}}}],
        },
    }
    created = cluster.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(obj)).stdout
    stored: Object = json.loads(created)
    return stored


def jobset_of(cluster: Kubectl, name: str) -> Object:
    """Its JobSet, once there is one."""
    return until(lambda: cluster.get("jobset", name), f"JobSet {name} exists")


def pods_of(cluster: Kubectl, name: str) -> list[Object]:
    """Its pods."""
    label = f"jobset.sigs.k8s.io/jobset-name={name}"
    pods: list[Object] = json.loads(cluster.kubectl("get", "pods", "-l", label, "-o", "json").stdout)["items"]
    return pods


def nodes_of(cluster: Kubectl, name: str) -> list[Object]:
    """Those that train."""
    return [pod for pod in pods_of(cluster, name) if pod["metadata"]["labels"][PODSET] == "node"]


def runs_what_is_counted(kueue: Kueue, name: str) -> bool:
    """Whether the JobSet runs the pods for which quota is reserved."""
    return pod_sets_of_jobset(jobset_of(kueue.cluster, name)) == kueue.pod_sets(name)


def state_of(cluster: Kubectl, name: str) -> str:
    """What `kubectl get trainjob` shows."""
    obj = cluster.get("trainjob", name) or {}
    return str((obj.get("status") or {}).get("state", ""))


def test_a_life_in_a_queue(kueue: Kueue, tmp_path: Path) -> None:
    """A TrainJob waits, runs, is stopped, waits, and runs to its end; quota is reserved for the pods that run."""
    name = f"life-{kueue.sends_patches:d}"
    created = submit(kueue.cluster, name, f"test -e {tmp_path}/go || exec sleep 600")
    assert created["spec"]["suspend"] is True
    assert created["spec"]["runtimePatches"][1] == ENTRY

    jobset = jobset_of(kueue.cluster, name)
    assert jobset["spec"]["suspend"] is True
    assert pod_sets_of_jobset(jobset) == kueue.pod_sets(name)
    assert [(each.name, each.count) for each in kueue.pod_sets(name)] == [("loader", 1), ("node", 2)]
    waiting = kueue.pod_sets(name)
    assert pods_of(kueue.cluster, name) == []

    kueue.start(name, HERE)
    until(lambda: kueue.are_pods_ready(name), "all pods are ready")
    assert runs_what_is_counted(kueue, name)
    assert kueue.pod_sets(name) != waiting
    nodes = nodes_of(kueue.cluster, name)
    assert len(nodes) == 2
    for pod in nodes:
        assert pod["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux", "capacity": "spot"}
        assert all(each in pod["spec"]["tolerations"] for each in (SPOT, OWN))
    until(lambda: kueue.reclaimable(name) == {"loader": 1}, "the loader gives its quota back")
    assert kueue.finished(name) is None

    stale = kueue.read(name)
    kueue.stop(name)
    assert CONFLICT in kueue.resume(stale).stderr
    assert kueue.read(name)["spec"]["runtimePatches"][1]["trainingRuntimeSpec"] == ENTRY["trainingRuntimeSpec"]
    until(lambda: pod_sets_of_jobset(jobset_of(kueue.cluster, name)) == waiting, "the JobSet is as before")
    until(lambda: nodes_of(kueue.cluster, name) == [], "pods have ended")
    until(lambda: state_of(kueue.cluster, name) == "Suspended", "it is suspended")

    (tmp_path / "go").touch()
    kueue.start(name, HERE)
    kind, message = until(lambda: kueue.finished(name), "it is finished")
    assert (kind, message) == ("Complete", "jobset completed successfully")
    assert kueue.reclaimable(name) == {"loader": 1, "node": 2}
    assert not kueue.is_active(name)


def test_another_flavor(kueue: Kueue) -> None:
    """After a stop it is admitted with another flavor, and its pods have what that one says alone."""
    name = f"flavor-{kueue.sends_patches:d}"
    submit(kueue.cluster, name, "exec sleep 600")
    elsewhere = Flavor({"kubernetes.io/hostname": "laptop"}, (SPOT | {"operator": "Exists", "value": None}, OWN))
    for flavor in (HERE, elsewhere):
        kueue.start(name, flavor)
        until(lambda: kueue.are_pods_ready(name), "all pods are ready")
        assert runs_what_is_counted(kueue, name)
        nodes = nodes_of(kueue.cluster, name)
        assert len(nodes) == 2
        for pod in nodes:
            assert pod["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"} | flavor.node_selector
            assert (SPOT in pod["spec"]["tolerations"]) is (flavor is HERE)
        kueue.stop(name)
        until(lambda: nodes_of(kueue.cluster, name) == [], "pods have ended")
    kueue.cluster.kubectl("delete", "trainjob", name)
