"""Kueue itself, on a cluster that has it: `make kind-cluster` installs it."""

from __future__ import annotations

import os
import uuid
from typing import Any

import pytest

from e2e.cluster import Cluster, train_job
from e2e.waiting import until

pytestmark = pytest.mark.skipif("E2E_KUBECONFIG" not in os.environ, reason="the dev cluster has no Kueue")
QUEUE = "kueue.x-k8s.io/queue-name"
SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def queue(cluster: Cluster) -> str:
    """A queue in the namespace, with quota for one training of 500m."""
    if cluster.get("customresourcedefinition", "clusterqueues.kueue.x-k8s.io") is None:
        pytest.skip("this cluster has no Kueue")
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    own = {"kubernetes.io/metadata.name": cluster.namespace}
    resources = [{"name": "cpu", "nominalQuota": "600m"}]
    group = {"coveredResources": ["cpu"], "flavors": [{"name": name, "resources": resources}]}
    cluster.belongings.create(
        cluster,
        _object("ResourceFlavor", name, {}),
        _object("ClusterQueue", name, {"namespaceSelector": {"matchLabels": own}, "resourceGroups": [group]}),
        _object("LocalQueue", name, {"clusterQueue": name}),
        namespace=cluster.namespace,
    )
    return name


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _training(name: str, script: str, queue: str) -> dict[str, Any]:
    training = train_job(name, script, labels={QUEUE: queue})
    training["spec"]["trainer"]["resourcesPerNode"] = {"requests": {"cpu": "500m"}}
    return training


def _waits(cluster: Cluster, name: str) -> bool:
    """Whether Kueue has a Workload of its JobSet, and no room for it."""
    workloads = [each for each in cluster.list("workloads.kueue.x-k8s.io") if name in _owners(each)]
    conditions = [each for workload in workloads for each in (workload.get("status") or {}).get("conditions") or ()]
    return any((each["type"], each["status"]) == ("QuotaReserved", "False") for each in conditions)


def _owners(obj: dict[str, Any]) -> list[str]:
    return [owner["name"] for owner in obj["metadata"].get("ownerReferences") or () if owner["kind"] == "JobSet"]


@pytest.mark.timeout(400)
def test_a_training_waits_for_quota(cluster: Cluster, queue: str) -> None:
    """The second one has no pods while the first one has the quota, and trains to its end afterwards."""
    cluster.apply(_training("first", SLEEP, queue))
    cluster.wait_for_state("first", "Running", timeout=120)
    cluster.apply(_training("second", "print('trained')", queue))
    until(lambda: _waits(cluster, "second"), "Kueue keeps the second training waiting")
    jobset = cluster.get("jobset", "second")
    assert jobset is not None
    assert jobset["spec"]["suspend"]
    assert not [pod for pod in cluster.list("pod") if pod["metadata"]["name"].startswith("second-")]
    cluster.kubectl("delete", "trainjob", "first", "--wait=false")
    cluster.complete("second")
    assert "trained" in cluster.log("second")
