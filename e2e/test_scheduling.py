"""A dev cluster with gang schedulers, and like Kubernetes 1.31 without streaming lists, so that managers list first.

Its pods are fake: nothing here depends on what they do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from e2e.claim_templates import claim_templates
from e2e.cluster import Cluster, train_job, training_runtime
from e2e.conftest import running_cluster
from e2e.gang_schedulers import COSCHEDULING, VOLCANO
from e2e.waiting import until

pytestmark = pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="needs a dev cluster with gang schedulers")

RUNS_FOR = "devcluster.trainer/runs-for"
OPTIONS = (
    *("--fake-pods", "--gang-schedulers", "coscheduling,volcano"),
    *("--feature-gates", "ElasticJobSet=true,WatchList=false"),
)


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster."""
    with running_cluster(tmp_path_factory.mktemp("scheduling"), *OPTIONS) as cluster:
        yield cluster


@pytest.fixture
def cluster(everywhere: Cluster) -> Iterator[Cluster]:
    """An empty namespace of it."""
    with everywhere.in_namespace() as own:
        yield own


def test_without_streaming_lists(everywhere: Cluster, cluster: Cluster) -> None:
    """A manager that is refused the initial events of a watch lists each kind that it watches, and knows what there is.

    It finds what is missing of a TrainJob that was there before it.
    """
    cluster.apply(train_job("demo", "pass", suspend=True))
    cluster.wait_for_state("demo", "Suspended")
    everywhere.manager.stop()
    cluster.kubectl("delete", "jobset", "demo")
    with claim_templates(everywhere):  # the optional kind that this cluster does not serve by itself
        everywhere.manager.start(ready="started controller")

    refusal = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    assert refusal in everywhere.manager.output()
    until(lambda: cluster.get("jobset", "demo"), "there is a JobSet again")
    cluster.suspend("demo", False)
    cluster.complete("demo")


@pytest.mark.parametrize(
    ("scheduler", "name", "kind"),
    [("coscheduling", "scheduler-plugins-scheduler", COSCHEDULING), ("volcano", "volcano", VOLCANO)],
)
def test_gang(cluster: Cluster, scheduler: str, name: str, kind: str) -> None:
    """No pod of a gang runs before all do; the PodGroup tells how it is, and goes when the training has ended."""
    runtime = training_runtime("gang", annotations={RUNS_FOR: "2s"}, pod={"schedulerName": name})
    runtime["spec"] |= {"mlPolicy": {"numNodes": 3}, "podGroupPolicy": {scheduler: {}}}
    job = train_job("demo", "pass", nodes=3, runtimeRef={"kind": "TrainingRuntime", "name": "gang"})
    job["spec"]["trainer"]["resourcesPerNode"] = {"limits": {"cpu": "4k"}}

    cluster.apply(runtime, job)
    until(lambda: len(cluster.list("pod")) == 3, "there are three pods")
    until(lambda: reasons(cluster, "pod"), "the pods have an event that says why they wait")
    assert {each["status"]["phase"] for each in cluster.list("pod")} == {"Pending"}
    assert not any(each["spec"].get("nodeName") for each in cluster.list("pod"))

    def is_reported() -> bool:
        status = (cluster.get(kind, "demo") or {}).get("status") or {}
        return status.get("phase") in {"Pending", "Scheduling", "Inqueue"}

    until(is_reported, "the PodGroup tells that it waits")
    explained = cluster.trainer("explain", "demo")
    assert explained.returncode == 3, explained.stderr
    assert "GangNotScheduled: the gang needs 3 pods at the same time: 3 exist" in explained.stdout

    allow(cluster, "12k")
    try:
        cluster.complete("demo")
    finally:
        allow(cluster, "10k")
    until(lambda: cluster.get(kind, "demo") is None, "the PodGroup is gone")


def test_pods_of_a_scheduler_that_finds_gangs_itself(cluster: Cluster) -> None:
    """Scheduler, queue and topology of the runtime reach the pods, and no other scheduler takes them."""
    own = {"kai.scheduler/queue": "research"}
    topology = {"kueue.x-k8s.io/podset-required-topology": "topology.kubernetes.io/rack"}
    runtime = training_runtime("kai", annotations=topology, pod={"schedulerName": "kai-scheduler"})
    (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    node["template"]["spec"]["template"]["metadata"]["labels"] = own
    job = train_job("demo", "pass", nodes=3, runtimeRef={"kind": "TrainingRuntime", "name": "kai"})

    cluster.apply(runtime, job)
    until(lambda: len(cluster.list("pod")) == 3, "there are three pods")

    for pod in cluster.list("pod"):
        assert pod["spec"]["schedulerName"] == "kai-scheduler"
        assert own.items() <= pod["metadata"]["labels"].items()
        assert topology.items() <= pod["metadata"]["annotations"].items()
    until(lambda: "no scheduler called kai-scheduler" in cluster.trainer("explain", "demo").stdout, "it says so")
    assert not any(each["spec"].get("nodeName") for each in cluster.list("pod"))


def reasons(cluster: Cluster, kind: str) -> list[str]:
    """Why objects of a kind could not be scheduled, by events."""
    found = [each for each in cluster.list("event") if each["reason"] == "FailedScheduling"]
    return [each["message"] for each in found if each["involvedObject"]["kind"].lower() == kind]


def allow(cluster: Cluster, cpu: str) -> None:
    """Have the node offer so much."""
    patch = json.dumps({"status": {"allocatable": {"cpu": cpu}}})
    cluster.kubectl("patch", "node", "laptop", "--subresource=status", "--type=merge", "-p", patch)
