"""The scheduler of the dev cluster: GPUs that are only names, gangs that wait, and an autoscaler.

It has a dev cluster of its own, whose pods are fake: nothing here depends on what they do. Like Kubernetes 1.31 it has
no streaming lists, so that managers list before they watch.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from e2e.claim_templates import claim_templates
from e2e.cluster import IMAGE, Cluster, train_job
from e2e.conftest import running_cluster
from e2e.waiting import until

pytestmark = pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="needs a dev cluster with made-up GPUs")

GPU = "nvidia.com/gpu"
RUNS_FOR = "devcluster.trainer/runs-for"
OPTIONS = (
    "--fake-pods",
    "--node-resources",
    f"{GPU}=2",
    "--gang-schedulers",
    "coscheduling,volcano",
    "--feature-gates",
    "ElasticJobSet=true,WatchList=false",
)


@pytest.fixture(scope="module")
def gpu_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A dev cluster with two GPUs and gang schedulers."""
    with running_cluster(tmp_path_factory.mktemp("scheduling"), *OPTIONS) as cluster:
        yield cluster


@pytest.fixture
def cluster(gpu_cluster: Cluster) -> Iterator[Cluster]:
    """An empty namespace of it."""
    own = replace(gpu_cluster, namespace=f"scheduling-{uuid.uuid4().hex[:8]}")
    gpu_cluster.kubectl("create", "namespace", own.namespace)
    yield own
    gpu_cluster.kubectl("delete", "namespace", own.namespace, "--timeout=60s")


def pod(name: str, gpus: int, *, runs_for: str = "1h", **spec: Any) -> dict[str, Any]:
    """A pod that has some GPUs for a time."""
    container = {"name": "main", "image": IMAGE, "resources": {"limits": {GPU: gpus}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {RUNS_FOR: runs_for}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def phase(cluster: Cluster, name: str) -> str:
    return str((cluster.get("pod", name) or {}).get("status", {}).get("phase", ""))


def events(cluster: Cluster, reason: str, name: str) -> list[str]:
    """What events say about an object."""
    found = cluster.list("event")
    return [each["message"] for each in found if each["reason"] == reason and each["involvedObject"]["name"] == name]


def test_gpus_are_counted(cluster: Cluster) -> None:
    """A pod for which there is no GPU is Pending, with an event that says so, until another pod gives one back."""
    node = cluster.kubectl("describe", "node", "laptop").stdout
    assert [line.split() for line in node.splitlines() if line.strip().startswith(f"{GPU}:")] == [[f"{GPU}:", "2"]] * 2

    cluster.apply(pod("first", 2), pod("second", 1))
    until(lambda: phase(cluster, "first") == "Running", "the first pod runs")
    (message,) = until(lambda: events(cluster, "FailedScheduling", "second"), "an event says why the second one waits")
    assert message.startswith(f"0/1 nodes are available: 1 Insufficient {GPU}.")
    assert phase(cluster, "second") == "Pending"
    described = cluster.kubectl("describe", "pod", "second").stdout
    assert "FailedScheduling" in described
    allocated = cluster.kubectl("describe", "node", "laptop").stdout.partition("Allocated resources:")[2]
    assert [GPU, "2", "2"] in [line.split() for line in allocated.splitlines()]

    cluster.kubectl("delete", "pod", "first")
    until(lambda: phase(cluster, "second") == "Running", "the second pod runs")


def test_without_streaming_lists(gpu_cluster: Cluster, cluster: Cluster) -> None:
    """A manager that is refused the initial events of a watch lists each kind that it watches, and knows what there is.

    It finds what is missing of a TrainJob that was there before it.
    """
    cluster.apply(train_job("demo", "pass", suspend=True))
    cluster.wait_for_state("demo", "Suspended")
    gpu_cluster.manager.stop()
    cluster.kubectl("delete", "jobset", "demo")
    with claim_templates(gpu_cluster):  # the optional kind that this cluster does not serve by itself
        gpu_cluster.manager.start(ready="started controller")

    refusal = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    assert refusal in gpu_cluster.manager.output()
    until(lambda: cluster.get("jobset", "demo"), "there is a JobSet again")
    cluster.kubectl("patch", "trainjob", "demo", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    assert cluster.wait_for_state("demo", "Complete", "Failed") == "Complete"


def test_train_job_without_gpus(cluster: Cluster) -> None:
    """A TrainJob that asks for more than there is says so itself."""
    job = train_job("demo", "pass")
    job["spec"]["trainer"]["resourcesPerNode"] = {"limits": {GPU: 3}}
    cluster.apply(job)
    cluster.wait_for_state("demo", "Pending", timeout=20)
    conditions = (cluster.get("trainjob", "demo") or {})["status"]["conditions"]
    assert any(f"Insufficient {GPU}" in each.get("message", "") for each in conditions)


@pytest.mark.parametrize("scheduler", ["coscheduling", "volcano"])
def test_gang(cluster: Cluster, scheduler: str) -> None:
    """No pod of a gang runs before all do, while those of another size pass; the PodGroup tells how it is."""
    name = {"coscheduling": "scheduler-plugins-scheduler", "volcano": "volcano"}[scheduler]
    container = {"name": "trainer", "image": IMAGE, "resources": {"limits": {"cpu": "10m"}}}
    template = {
        "metadata": {"annotations": {RUNS_FOR: "2s"}},
        "spec": {"schedulerName": name, "restartPolicy": "Never", "containers": [container]},
    }
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "gang"},
        "spec": {
            "mlPolicy": {"numNodes": 3},
            "podGroupPolicy": {scheduler: {}},
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {"name": "node", "template": {"metadata": {"labels": labels}, "spec": {"template": template}}}
                    ]
                }
            },
        },
    }
    half = {"limits": {"cpu": "4k"}}
    job = train_job("demo", "pass", nodes=3, runtimeRef={"kind": "TrainingRuntime", "name": "gang"})
    job["spec"]["trainer"]["resourcesPerNode"] = half
    kind = {"coscheduling": "podgroups.scheduling.x-k8s.io", "volcano": "podgroups.scheduling.volcano.sh"}[scheduler]

    cluster.apply(runtime, job)
    until(lambda: len(cluster.list("pod")) == 3, "there are three pods")
    first = cluster.list("pod")[0]["metadata"]["name"]
    until(lambda: events(cluster, "FailedScheduling", first), "the pods have an event that says why they wait")
    assert {each["status"]["phase"] for each in cluster.list("pod")} == {"Pending"}
    assert not any(each["spec"].get("nodeName") for each in cluster.list("pod"))

    def is_reported() -> bool:
        status = (cluster.get(kind, "demo") or {}).get("status") or {}
        return status.get("phase") in {"Pending", "Scheduling", "Inqueue"}

    until(is_reported, "the PodGroup tells that it waits")
    explained = cluster.trainer("explain", "demo")
    assert explained.returncode == 3, explained.stderr
    assert "GangNotScheduled: the gang needs 3 pods at the same time: 3 exist" in explained.stdout

    patch = json.dumps({"status": {"allocatable": {"cpu": "12k"}}})
    cluster.kubectl("patch", "node", "laptop", "--subresource=status", "--type=merge", "-p", patch)
    try:
        assert cluster.wait_for_state("demo", "Complete", "Failed") == "Complete"
    finally:
        back = json.dumps({"status": {"allocatable": {"cpu": "10k"}}})
        cluster.kubectl("patch", "node", "laptop", "--subresource=status", "--type=merge", "-p", back)


def test_autoscaler(cluster: Cluster) -> None:
    """An elastic training grows when the annotation says that its nodes have much to do."""
    runtime = cluster.get("clustertrainingruntime", "torch-distributed-elastic")
    assert runtime is not None
    own = {key: runtime[key] for key in ("apiVersion", "spec")}
    own |= {"kind": "TrainingRuntime", "metadata": {"name": "elastic"}}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    own["spec"]["mlPolicy"]["torch"]["elasticPolicy"]["metrics"] = [{"type": "Resource", "resource": cpu}]
    pods = own["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pods.setdefault("metadata", {}).setdefault("annotations", {})[RUNS_FOR] = "1h"
    cluster.apply(own, train_job("demo", "pass", runtimeRef={"kind": "TrainingRuntime", "name": "elastic"}))
    until(lambda: cluster.get("hpa", "demo"), "there is an autoscaler")
    until(lambda: [phase(cluster, each["metadata"]["name"]) for each in cluster.list("pod")] == ["Running"], "it runs")

    cluster.kubectl("annotate", "hpa", "demo", "devcluster.trainer/metric-cpu=100%")
    until(lambda: len(cluster.list("pod")) == 2, "there are two pods")
    assert (
        "cpu resource utilization (percentage of request) above target"
        in until(lambda: events(cluster, "SuccessfulRescale", "demo"), "an event")[0]
    )

    def row() -> list[str]:
        return cluster.kubectl("get", "hpa", "demo", "--no-headers").stdout.split()

    assert row()[:2] == ["demo", "TrainJob/demo"]
    until(lambda: "100%/50%" in row(), "what it has measured is shown")
    described = cluster.kubectl("describe", "hpa", "demo").stdout
    assert "ValidMetricFound" in described
