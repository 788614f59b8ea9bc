"""What people write into a cluster does not decide how much memory the manager takes."""

from __future__ import annotations

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from trainer.api.runtime_snapshot import SNAPSHOT_LABEL
from trainer.kube.objects import Object, controller_reference
from trainer.kube.resource import CONFIG_MAPS
from trainer.plugins.mpi.hostfile import HOSTFILE_LABEL
from trainer_kube_testing import settle

LARGE = "x" * 100_000
MANY = 50
OWNED = {"ownerReferences": [controller_reference(train_job_object())]}


def config_map(number: int, label: str, *, metadata: Object | None = None, data: Object | None = None) -> Object:
    """One that carries a label of ours, in a namespace with no TrainJob."""
    labels = {"labels": {label: "x"} | ((metadata or {}).get("labels") or {})}
    named = {"name": f"large-{number}", "namespace": "other"} | (metadata or {}) | labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": data or {}}


def cached_bytes(cluster: Cluster) -> float:
    """What the caches of ConfigMaps hold."""
    return sum(
        sample.value
        for family in cluster.metrics.registry.collect()
        for sample in family.samples
        if sample.name.endswith("cache_bytes") and sample.labels.get("resource") == "configmaps"
    )


@pytest.mark.parametrize("label", [SNAPSHOT_LABEL, HOSTFILE_LABEL])
@pytest.mark.parametrize(
    ("metadata", "data"),
    [
        pytest.param({}, {"runtime": LARGE}, id="data"),
        pytest.param({"annotations": {"theirs": LARGE}}, {}, id="annotations"),
        pytest.param({"annotations": {"trainer.kubeflow.org/applied-hash": LARGE}}, {}, id="our-annotation"),
        pytest.param({"labels": {f"label-{number}": "x" * 60 for number in range(1000)}}, {}, id="labels"),
        pytest.param(
            {"labels": {f"trainer.kubeflow.org/{number}": "x" * 60 for number in range(1000)}}, {}, id="labels-of-ours"
        ),
        pytest.param({"finalizers": [f"example.com/{number}" for number in range(5000)]}, {}, id="finalizers"),
        pytest.param({"generateName": LARGE}, {}, id="anything-else"),
        pytest.param(
            {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": str(number)} for number in range(3000)]},
            {},
            id="owners",
        ),
    ],
)
@pytest.mark.parametrize("is_first", [pytest.param(True, id="listed"), pytest.param(False, id="watched")])
async def test_config_maps_with_our_labels(
    cluster: Cluster, label: str, metadata: Object, data: Object, is_first: bool
) -> None:
    """However large they are, the cache holds two KiB of each at most."""
    objects = [config_map(number, label, metadata=metadata, data=data) for number in range(MANY)]
    for obj in objects if is_first else []:
        cluster.client.add(obj)
    async with cluster.managed():
        for obj in [] if is_first else objects:
            cluster.client.add(obj)
        await settle()
        assert 0 < cached_bytes(cluster) < MANY * 2500


async def test_requests_for_snapshots(cluster: Cluster) -> None:
    """None for TrainJobs on their runtime of today; on an earlier one, at most one for each reconcile at a time."""
    async with cluster.managed():
        for number in range(40):
            await cluster.put(train_job_object(f"demo-{number}", suspend=True))
        assert cluster.client.requests_of("get") == []
        for image, most in (("newer", 10), ("newest", 0)):
            cluster.forget_requests()
            await cluster.put(runtime_object(replicated_job("node", {"name": "trainer", "image": image})))
            assert {request.resource for request in cluster.client.requests} <= {CONFIG_MAPS}
            assert len(cluster.client.requests) <= most
