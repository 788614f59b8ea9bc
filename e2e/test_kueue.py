"""Kueue on `trainer up --api-version v1alpha1`: its webhooks and its controller are played request by request.

The only node has a label and a taint, so that pods run where Kueue has said so, and nowhere else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.home import Home
from e2e.kubectl import Kubectl
from e2e.kueue import CONFLICT, Flavor, Kueue
from e2e.kueue_pod_sets import STEP, pod_sets_of_jobset
from e2e.kueue_webhooks import FLEET, MANAGER, MULTIKUEUE, QUEUE, webhooks
from e2e.waiting import until

Object = dict[str, Any]

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(300),
]
API_VERSION = "trainer.kubeflow.org/v1alpha1"
TEAM, WORKER, LEGACY = "team", "worker", "legacy"
SPOT = {"key": "capacity", "operator": "Equal", "value": "spot", "effect": "NoSchedule"}
OWN = {"key": "example.com/own", "operator": "Exists"}
HERE = Flavor({"capacity": "spot"}, (SPOT, OWN))
ELSEWHERE = Flavor({"capacity": "reserved"}, (SPOT,))
PODSET = "kueue.x-k8s.io/podset"
GATE = "kueue.x-k8s.io/topology"
ENTRY = {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {}}}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A laptop with a cluster that serves v1alpha1, and with nodes that nobody uses by chance."""
    own = Home(tmp_path_factory.mktemp("home"))
    up = own.trainer("up", "--api-version", "v1alpha1")
    assert up.returncode == 0, up.stdout + up.stderr
    admin = Kubectl(own.kubeconfig)
    admin.kubectl("label", "node", "laptop", "capacity=spot")
    admin.kubectl("taint", "node", "laptop", "capacity=spot:NoSchedule")
    yield own
    own.trainer("down", "--delete")


def namespace(home: Home, name: str, **labels: str) -> Kubectl:
    """A namespace with a runtime: a Job that loads something, and the nodes."""
    cluster = Kubectl(home.kubeconfig, namespace=name)
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
    template = {"metadata": {"labels": labels}, "spec": {"replicatedJobs": jobs}}
    runtime = {
        "apiVersion": API_VERSION,
        "kind": "TrainingRuntime",
        "metadata": {"name": "own", "namespace": name},
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": template},
    }
    objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, runtime]
    cluster.kubectl("apply", "-f", "-", stdin=yaml.dump_all(objects, Dumper=yaml.CSafeDumper))
    return cluster


@pytest.fixture(scope="module")
def team(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A namespace whose TrainJobs Kueue manages, and whose JobSets it would manage, too."""
    cluster = namespace(home, TEAM)
    with webhooks(cluster, tmp_path_factory.mktemp("webhooks"), manages_train_jobs=True):
        yield cluster


@pytest.fixture(params=[True, False], ids=["patches", "updates"])
def kueue(request: pytest.FixtureRequest, team: Kubectl) -> Kueue:
    """Kueue, as different releases of it write."""
    return Kueue(team, sends_patches=request.param)


def submit(cluster: Kubectl, name: str, script: str, *, queue: str = "default", **spec: Any) -> Object:
    """What a user creates, with members that say nothing, and what the cluster has stored of it."""
    pods = {"metadata": {"labels": {}, "annotations": {"a": "b"}}, "spec": {"nodeSelector": {}, "tolerations": []}}
    changes = {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": pods}}}]}
    obj = {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": {"name": name, "labels": {QUEUE: queue}},
        "spec": {
            "runtimeRef": {"name": "own", "kind": "TrainingRuntime"},
            "trainer": {
                "numNodes": 2,
                "command": ["sh", "-c", script],
                "resourcesPerNode": {"requests": {"cpu": "100m"}},
            },
            "runtimePatches": [{"manager": "example.com/me", "trainingRuntimeSpec": {"template": {"spec": changes}}}],
            **spec,
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
    assert state_of(kueue.cluster, name) == "Suspended"

    (tmp_path / "go").touch()
    kueue.start(name, HERE)
    kind, message = until(lambda: kueue.finished(name), "it is finished")
    assert (kind, message) == ("Complete", "jobset completed successfully")
    assert kueue.reclaimable(name) == {"loader": 1, "node": 2}
    assert not kueue.is_active(name)


def test_what_is_refused(kueue: Kueue) -> None:
    """What decides about nodes cannot change while pods run; refused in the words of the released Trainer."""
    name = f"order-{kueue.sends_patches:d}"
    submit(kueue.cluster, name, "exec sleep 600")
    assert kueue.insist(name, kueue.resume) == ""
    until(lambda: state_of(kueue.cluster, name) == "Pending", "its pods run nowhere")
    refusal = "RuntimePatches can only be modified when the TrainJob is suspended before or after the update"
    assert refusal in kueue.insist(name, lambda obj: kueue.place(obj, HERE))
    kueue.stop(name)

    kueue.start(name, HERE)
    until(lambda: kueue.are_pods_ready(name), "all pods are ready")
    refusal = "RuntimePatches cannot be modified when the JobSet's ReplicatedJob node is still active"
    assert refusal in kueue.insist(name, kueue.stop_at_once)
    kueue.stop(name)
    kueue.start(name, ELSEWHERE)
    until(lambda: state_of(kueue.cluster, name) == "Pending", "there is no such node")
    assert runs_what_is_counted(kueue, name)
    kueue.cluster.kubectl("delete", "trainjob", name)


def test_topology(team: Kubectl) -> None:
    """Pods wait at a gate until each gets its node."""
    kueue, name = Kueue(team, sends_patches=True), "topology"
    submit(team, name, "exit 0")
    kueue.start(name, replace(HERE, scheduling_gates=(GATE,)))

    def gated() -> list[Object]:
        return [pod for pod in pods_of(team, name) if pod["spec"].get("schedulingGates")]

    def released() -> bool:
        for pod in gated():
            spec = {"schedulingGates": [], "nodeSelector": pod["spec"]["nodeSelector"] | {"kubernetes.io/os": "linux"}}
            team.kubectl("patch", "pod", pod["metadata"]["name"], "--type=merge", "-p", json.dumps({"spec": spec}))
        return kueue.finished(name) is not None

    until(lambda: len(gated()) == 3, "three pods wait")
    until(lambda: state_of(team, name) == "Pending", "the state tells")
    assert runs_what_is_counted(kueue, name)
    until(released, "it is finished")
    assert kueue.finished(name) == ("Complete", "jobset completed successfully")


def test_multikueue(home: Home, team: Kubectl) -> None:
    """Another cluster runs it; its status comes from there, and our manager writes none."""
    worker = namespace(home, WORKER)
    name = "remote"
    created = submit(team, name, "exit 0", queue=FLEET)
    assert created["spec"]["managedBy"] == MULTIKUEUE

    copy = {each: created["metadata"][each] for each in ("name", "labels")} | {"namespace": WORKER}
    spec = {field: value for field, value in created["spec"].items() if field not in ("managedBy", "suspend")}
    spec["runtimePatches"] = [each for each in spec["runtimePatches"] if each["manager"] != MANAGER]
    remote = {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": copy, "spec": spec}
    worker.kubectl("create", "-f", "-", stdin=json.dumps(remote))
    there = Kueue(worker, sends_patches=True)

    def mirror() -> Object:
        status = there.read(name)["status"]
        patch = json.dumps({"status": status})
        team.kubectl("patch", "trainjob", name, "--subresource=status", "--type=merge", "-p", patch)
        return dict(status)

    until(lambda: state_of(worker, name) == "Pending", "the copy is taken up")
    mirrored = mirror()
    team.kubectl("patch", "trainjob", name, "--type=merge", "-p", '{"spec": {"suspend": false}}')
    submit(team, "later", "exit 0")
    until(lambda: state_of(team, "later") == "Suspended", "the manager has seen all this")
    local = json.loads(team.kubectl("get", "trainjob", name, "-o", "json", "--show-managed-fields").stdout)
    assert local["status"] == mirrored
    assert not any(each["manager"].startswith("trainer") for each in local["metadata"]["managedFields"])
    assert team.get("jobset", name) is None


def test_jobsets_in_a_queue(home: Home, tmp_path: Path) -> None:
    """Where Kueue does not manage TrainJobs, it may suspend their JobSets, which then wait for it."""
    cluster = namespace(home, LEGACY, **{QUEUE: "default"})
    name = "queued"
    with webhooks(cluster, tmp_path, manages_train_jobs=False):
        created = submit(cluster, name, "exit 0")
        assert created["spec"]["suspend"] is False
        until(lambda: state_of(cluster, name) == "Pending", "the state tells")
        status = Kueue(cluster, sends_patches=True).read(name)["status"]
        (pending,) = (each for each in status["furtherConditions"] if each["type"] == "Pending")
        assert (pending["reason"], pending["message"]) == ("JobSetSuspended", "waits in Kueue's queue default")
        assert "conditions" not in status

        generation = json.loads(
            cluster.kubectl(
                "patch",
                "trainjob",
                name,
                "--type=merge",
                "-o",
                "json",
                "-p",
                '{"spec": {"activeDeadlineSeconds": 900}}',
            ).stdout
        )["metadata"]["generation"]

        def is_seen() -> bool:
            obj = cluster.get("trainjob", name) or {}
            return bool(obj["status"].get("observedGeneration") == generation)

        until(is_seen, "the manager has looked at it again")
        jobset = jobset_of(cluster, name)
        assert jobset["spec"]["suspend"] is True

        for job in jobset["spec"]["replicatedJobs"]:
            job["template"]["spec"]["template"]["spec"]["tolerations"] = [SPOT]
        jobset["spec"]["suspend"] = False
        cluster.kubectl("replace", "-f", "-", stdin=json.dumps(jobset))
        until(lambda: state_of(cluster, name) == "Complete", "it is complete")
