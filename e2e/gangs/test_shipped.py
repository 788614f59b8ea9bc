"""All shipped runtimes in gangs, since the manager says so (`gangScheduling: auto`). Their pods are fake."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from e2e.cluster import Cluster, train_job
from e2e.gangs.pod_groups import POD_GROUPS, group_of
from e2e.manager import reconfigured
from e2e.waiting import until

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="needs as many GPUs as all shipped runtimes ask for"),
    pytest.mark.timeout(300),
]

REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"


@pytest.fixture
def cluster(fake_pods: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An empty namespace of a cluster with GPUs, whose manager has all trainings in gangs."""
    gpus = json.dumps({"status": {"capacity": {"nvidia.com/gpu": "100"}}})
    fake_pods.kubectl("patch", "node", "laptop", "--subresource=status", "--type=merge", "-p", gpus)
    with (
        reconfigured(fake_pods, tmp_path_factory.mktemp("auto"), gangScheduling="auto"),
        fake_pods.in_namespace() as empty,
    ):
        yield empty


def test_no_gang_waits_for_itself(cluster: Cluster) -> None:
    """Two nodes of each complete; what comes before the training, which its nodes wait for, is in no gang."""
    runtimes = [each["metadata"]["name"] for each in cluster.list("clustertrainingruntime")]
    cluster.apply(*(train_job(name.replace(".", "-"), "pass", nodes=2, runtime=name) for name in runtimes))

    def are_complete() -> bool:
        return all((job.get("status") or {}).get("state") == "Complete" for job in cluster.list("trainjob"))

    until(are_complete, lambda: cluster.kubectl("get", "trainjob,pod").stdout, timeout=240)
    groups = {pod["metadata"]["name"]: group_of(pod) for pod in cluster.list("pod")}
    roles = {pod["metadata"]["name"]: pod["metadata"]["labels"][REPLICATED_JOB] for pod in cluster.list("pod")}
    assert [name for name, role in roles.items() if role == "node" and not groups[name]] == []
    assert [name for name, role in roles.items() if role.endswith("initializer") and groups[name]] == []
    assert {"dataset-initializer", "model-initializer"} <= set(roles.values())
    until(lambda: not cluster.list(POD_GROUPS), "nothing is kept for trainings that have ended")
