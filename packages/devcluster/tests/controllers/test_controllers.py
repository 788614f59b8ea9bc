"""All controllers together on the real API server; the test plays the kubelet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from packages.devcluster.tests.controllers.cluster import NAMESPACE, Cluster, dev_cluster
from trainer.kube.client import DeleteOptions, PatchType, Propagation
from trainer.kube.errors import InvalidError
from trainer.kube.objects import Object, is_condition_true, labels_of, name_of, uid_of
from trainer.kube.resource import (
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    Resource,
)
from trainer.workloads import JOBSETS
from trainer_devcluster.feature_gates import FeatureGates

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


def make_jobset(replicas: int = 1, **spec: Any) -> Object:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
    template = {"spec": {"parallelism": 2, "completions": 2, "backoffLimit": 0, "template": pod}}
    return {
        "metadata": {"name": "js"},
        "spec": {"replicatedJobs": [{"name": "node", "replicas": replicas, "template": template}], **spec},
    }


async def count(cluster: Cluster, resource: Resource, expected: int) -> bool:
    return len(await cluster.all(resource)) == expected


async def is_true(cluster: Cluster, condition: str) -> bool:
    return is_condition_true(await cluster.client.get(JOBSETS, "js", NAMESPACE), condition)


async def gone(cluster: Cluster, *resources: Resource) -> bool:
    return not any([await cluster.all(resource) for resource in resources])


async def test_controllers_that_are_killed_anywhere_converge(tmp_path: Path) -> None:
    """New controllers with an empty memory take over at every stage; nothing is made or counted twice."""
    async with dev_cluster(tmp_path) as cluster:
        async with cluster.controllers():
            await cluster.create(JOBSETS, make_jobset())
        async with cluster.controllers():
            await cluster.until(lambda: count(cluster, PODS, 2))
        names = {name_of(pod) for pod in await cluster.all(PODS)}
        await cluster.set_phase("Running")
        await cluster.set_phase("Succeeded")
        async with cluster.controllers():
            pass
        async with cluster.controllers():
            await cluster.until(lambda: is_true(cluster, "Completed"))
        assert {name_of(pod) for pod in await cluster.all(PODS)} == names
        [job] = await cluster.all(JOBS)
        assert job["status"]["succeeded"] == 2
        assert "failed" not in job["status"]


async def test_orphaned_pods_live_on(tmp_path: Path) -> None:
    """They lose owner reference and finalizer, so that a later deletion is not held up."""
    async with dev_cluster(tmp_path) as cluster, cluster.controllers():
        pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
        await cluster.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": pod}})
        await cluster.until(lambda: count(cluster, PODS, 1))
        await cluster.client.delete(JOBS, "j", NAMESPACE, DeleteOptions(propagation=Propagation.ORPHAN))
        await cluster.until(lambda: gone(cluster, JOBS))

        async def released() -> bool:
            [orphan] = await cluster.all(PODS)
            return not orphan["metadata"].get("finalizers") and not orphan["metadata"].get("ownerReferences")

        await cluster.until(released)


async def create_family(cluster: Cluster, name: str) -> None:
    """A widget and a ConfigMap that it owns."""
    widget = await cluster.create(WIDGETS, {"metadata": {"name": name}})
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": name, "uid": uid_of(widget)}
    await cluster.create(CONFIG_MAPS, {"metadata": {"name": f"child-of-{name}", "ownerReferences": [owner]}})


async def is_gone(cluster: Cluster, resource: Resource, name: str) -> bool:
    return name not in {name_of(obj) for obj in await cluster.all(resource, None)}


async def test_deleted_namespace_is_emptied(tmp_path: Path) -> None:
    """Everything in it goes, finalizers of tracked pods included, and then the namespace."""
    async with dev_cluster(tmp_path) as cluster, cluster.controllers():
        await cluster.create(JOBSETS, make_jobset())
        await cluster.until(lambda: count(cluster, PODS, 2))
        await cluster.client.delete(NAMESPACES, NAMESPACE)

        await cluster.until(lambda: is_gone(cluster, NAMESPACES, NAMESPACE))
        assert await gone(cluster, JOBSETS, JOBS, PODS, SERVICES, EVENTS, CONFIG_MAPS)


def make_claiming_jobset(**policy: Any) -> Object:
    """A JobSet whose pods mount a claim."""
    claim_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    templates = [{"metadata": {"name": "data"}, "spec": claim_spec}]
    jobset = make_jobset(volumeClaimPolicies=[{"templates": templates, **policy}])
    [container] = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return jobset


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        pytest.param({}, [], id="deleted by default"),
        pytest.param({"retentionPolicy": {"whenDeleted": "Retain"}}, ["data-js"], id="retained"),
    ],
)
async def test_claims_of_a_jobset(tmp_path: Path, policy: Object, left: list[str]) -> None:
    """Pods share the claim of their JobSet, which goes with it or stays."""
    async with dev_cluster(tmp_path) as cluster, cluster.controllers():
        await cluster.create(JOBSETS, make_claiming_jobset(**policy))
        await cluster.until(lambda: count(cluster, PODS, 2))
        [claim] = await cluster.all(PERSISTENT_VOLUME_CLAIMS)
        assert labels_of(claim) == {"jobset.sigs.k8s.io/jobset-name": "js"}
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-js"}}
        assert [pod["spec"]["volumes"][:1] for pod in await cluster.all(PODS)] == [[volume]] * 2
        await cluster.client.delete(JOBSETS, "js", NAMESPACE, DeleteOptions(propagation=Propagation.FOREGROUND))
        await cluster.until(lambda: gone(cluster, JOBSETS, JOBS, PODS))

        async def settled() -> bool:
            return [name_of(claim) for claim in await cluster.all(PERSISTENT_VOLUME_CLAIMS)] == left

        await cluster.until(settled)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        pytest.param({"namespace": "n"}, "namespace cannot be set for VolumeClaimPolicies templates", id="namespace"),
        pytest.param({"namespace": ""}, "", id="empty namespace"),
    ],
)
async def test_claims_have_no_namespace_of_their_own(tmp_path: Path, metadata: Object, message: str) -> None:
    """They are made where the JobSet is."""
    jobset = make_claiming_jobset()
    jobset["spec"]["volumeClaimPolicies"][0]["templates"][0]["metadata"] |= metadata
    async with dev_cluster(tmp_path) as cluster:
        if not message:
            await cluster.create(JOBSETS, jobset)
            return
        with pytest.raises(InvalidError, match=message):
            await cluster.create(JOBSETS, jobset)


async def resize(cluster: Cluster, pods: int) -> None:
    """Change how many pods the Jobs of the JobSet have."""
    template = "/spec/replicatedJobs/0/template/spec"
    patch = [
        {"op": "replace", "path": f"{template}/{field}", "value": pods} for field in ("parallelism", "completions")
    ]
    await cluster.client.patch(JOBSETS, "js", patch, NAMESPACE, patch_type=PatchType.JSON)


async def running(cluster: Cluster) -> dict[str, str]:
    """Names of the pods that are not about to go, by completion index."""
    pods = [pod for pod in await cluster.all(PODS) if "deletionTimestamp" not in pod["metadata"]]
    return {labels_of(pod)["batch.kubernetes.io/job-completion-index"]: name_of(pod) for pod in pods}


async def test_jobset_grows_and_shrinks_while_it_runs(tmp_path: Path) -> None:
    """With the feature gate, pods of the highest indexes come and go; the others run on, and may succeed alone."""
    async with dev_cluster(tmp_path, FeatureGates(elastic_job_set=True)) as cluster, cluster.controllers():
        await cluster.create(JOBSETS, make_jobset())
        await cluster.until(lambda: count(cluster, PODS, 2))
        first = await running(cluster)

        async def has(indexes: str) -> bool:
            return "".join(sorted(await running(cluster))) == indexes

        await resize(cluster, 4)
        await cluster.until(lambda: has("0123"))
        assert first.items() <= (await running(cluster)).items()
        await cluster.set_phase("Running")

        await resize(cluster, 1)
        await cluster.until(lambda: has("0"))
        await cluster.set_phase("Succeeded")
        await cluster.until(lambda: is_true(cluster, "Completed"))
        [job] = await cluster.all(JOBS)
        assert (job["status"]["completedIndexes"], job["status"].get("failed")) == ("0", None)
