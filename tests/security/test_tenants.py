"""Tenants share a manager that may do more than they: what it does for one of them stays in the namespace of that one.

A tenant here is somebody who writes TrainJobs in one namespace, perhaps other objects there as well.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import pod_metadata, replicated_job, runtime_object, train_job_object
from tests.security.admission import review
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.deploying.child import APPLIED_HASH, DELETE_WHEN_FINISHED, FIXED_HASH, LIVES_ON, SPEC_HASH
from trainer.framework.plugin_api.component import ADOPTED
from trainer.framework.runtimes.runtimes import RUNTIME_DIGEST, digest_of, make_snapshot
from trainer.kube.objects import Object, controller_reference, find_condition, name_of, namespace_of
from trainer.kube.resource import CONFIG_MAPS, HORIZONTAL_POD_AUTOSCALERS, SECRETS, Resource
from trainer.plugins.coscheduling import POD_GROUPS
from trainer.plugins.mpi.hostfile import HOSTFILE_LABEL
from trainer.plugins.torch.elastic import LABEL as AUTOSCALER_LABEL
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

OTHER = "other-team"
SERVICES = Resource("", "v1", "services", "Service")
PRIVILEGED = {"name": "trainer", "image": "theirs", "securityContext": {"privileged": True}}


def runtime_of(namespace: str) -> Object:
    """A TrainingRuntime."""
    obj = runtime_object(replicated_job("node", {"name": "trainer", "image": f"image-of-{namespace}"}))
    return obj | {"kind": "TrainingRuntime", "metadata": {"name": "private", "namespace": namespace}}


def referring(kind: str = "TrainingRuntime", name: str = "private", **spec: Any) -> Object:
    """A TrainJob of the tenant that builds on this runtime."""
    return train_job_object(runtimeRef={"kind": kind, "name": name}, **spec)


def images(cluster: Cluster) -> list[str]:
    """What would run."""
    return [
        container["image"]
        for jobset in cluster.jobsets
        for job in jobset["spec"]["replicatedJobs"]
        for container in job["template"]["spec"]["template"]["spec"]["containers"]
    ]


@pytest.mark.parametrize(
    ("namespaces", "expected"),
    [
        pytest.param([OTHER], [], id="only-elsewhere"),
        pytest.param([OTHER, "default"], ["image-of-default"], id="both"),
    ],
)
async def test_a_runtime_of_another_namespace(cluster: Cluster, namespaces: list[str], expected: list[str]) -> None:
    """It is out of reach: a TrainJob that names it waits for one of its own namespace."""
    for namespace in namespaces:
        cluster.client.add(runtime_of(namespace))
    async with cluster.managed():
        await cluster.put(referring())
        assert images(cluster) == expected


async def test_admission_says_nothing_of_another_namespace() -> None:
    """Neither that there is such a runtime, nor what is wrong with the TrainJob on it."""
    tenant = referring(podSpecOverrides=[{"targetJobs": [{"name": "no-such-job"}]}])
    assert await review(tenant, runtime_of(OTHER)) == await review(tenant)
    assert await review(tenant, runtime_of("default")) != await review(tenant)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"runtimeRef": {"name": "r", "namespace": OTHER}}, "spec.runtimeRef.namespace", id="runtime"),
        pytest.param(
            {"datasetConfig": {"secretRef": {"name": "s", "namespace": OTHER}}},
            "spec.datasetConfig.secretRef.namespace",
            id="credentials",
        ),
        pytest.param(
            {"trainer": {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "namespace": OTHER}}}]}},
            "spec.trainer.env[0].valueFrom.secretKeyRef.namespace",
            id="variable",
        ),
        pytest.param(
            {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], "metadata": {"namespace": OTHER}}]},
            "spec.podSpecOverrides[0].metadata.namespace",
            id="pods",
        ),
        pytest.param(
            {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], "metadata": {"ownerReferences": []}}]},
            "spec.podSpecOverrides[0].metadata.ownerReferences",
            id="owners-of-pods",
        ),
        pytest.param(
            {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], "metadata": {"finalizers": ["a/b"]}}]},
            "spec.podSpecOverrides[0].metadata.finalizers",
            id="finalizers-of-pods",
        ),
        pytest.param(
            {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], "hostNetwork": True}]},
            "spec.podSpecOverrides[0].hostNetwork",
            id="network-of-the-host",
        ),
    ],
)
async def test_what_a_train_job_cannot_say(spec: dict[str, Any], field: str) -> None:
    """There is no field with which it could name another namespace, other owners, or the host's namespaces."""
    errors, _ = await review(train_job_object(**spec))
    assert [error for error in errors if error.startswith(f"{field}: ")], errors


@pytest.mark.parametrize(
    "label",
    [
        "jobset.sigs.k8s.io/jobset-name",
        "jobset.sigs.k8s.io/jobset-uid",
        "batch.kubernetes.io/controller-uid",
        "controller-uid",
        "job-name",
        "trainer.kubeflow.org/trainjob-ancestor-step",
    ],
)
@pytest.mark.parametrize(
    "place",
    [
        "spec.labels",
        "spec.jobSetMetadata.labels",
        "spec.podSpecOverrides[0].metadata.labels",
        "spec.podSpecOverrides[0].jobMetadata.labels",
    ],
)
async def test_labels_by_which_pods_are_found(label: str, place: str) -> None:
    """No TrainJob makes pods that look like those of another."""
    labels = {label: "victim"}
    *parents, member = place.removesuffix(".labels").removesuffix("spec").rsplit(".", 1)
    spec: dict[str, Any] = {"labels": labels}
    if parents == ["spec"]:
        spec = {member: {"labels": labels}}
    elif parents:
        spec = {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], member: {"labels": labels}}]}
    errors, _ = await review(referring(**spec), runtime_of("default"))
    assert [error for error in errors if error.startswith(f"{place}[{label}]: Forbidden: ")], errors


async def test_annotations_that_are_ours(cluster: Cluster) -> None:
    """What a TrainJob says about the deployment of its children does not count."""
    async with cluster.managed():
        theirs = {
            DELETE_WHEN_FINISHED: "true",
            APPLIED_HASH: "x",
            FIXED_HASH: "x",
            SPEC_HASH: "x",
            LIVES_ON: "x",
            RUNTIME_DIGEST: "x",
            ADOPTED: "x",
            "theirs": "y",
        }
        await cluster.put(train_job_object(annotations=theirs))
        found = cluster.jobset["metadata"]["annotations"]
        assert found.keys() == {APPLIED_HASH, FIXED_HASH, SPEC_HASH, RUNTIME_DIGEST, "theirs"}
        assert found[FIXED_HASH] != "x"
        assert "x" not in found.values()


@pytest.mark.parametrize(
    ("taken", "resource"),
    [
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap"}, CONFIG_MAPS, id="snapshot"),
        pytest.param({"apiVersion": JOBSETS.api_version, "kind": "JobSet"}, JOBSETS, id="jobset"),
    ],
)
async def test_names_that_are_taken(cluster: Cluster, taken: Object, resource: Any) -> None:
    """An object of somebody else is neither changed nor adopted nor deleted, and the condition names it."""
    name = "demo-runtime-snapshot" if resource == CONFIG_MAPS else "demo"
    before = cluster.client.add(taken | {"metadata": {"name": name, "namespace": "default"}, "data": {"their": "own"}})
    async with cluster.managed():
        await cluster.put(train_job_object())
        _, _, message = cluster.condition("Created") or ("", "", "")
        assert f"{taken['kind']} default/{name} " in message
        assert "does not belong to this TrainJob" in message
        await cluster.client.delete(TRAIN_JOBS, "demo", "default")
    assert cluster.client.find(resource, name, "default") == before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("a", "a-node", id="replicated-job"),
        pytest.param("a", "a-node-0", id="job"),
        pytest.param("a", "a-runtime", id="snapshot"),
        pytest.param("a", "a-mpi", id="hostfile"),
    ],
)
async def test_names_that_begin_alike(cluster: Cluster, first: str, second: str) -> None:
    """No child of one TrainJob has the name of a child of another."""
    async with cluster.managed():
        for name in (first, second):
            await cluster.put(train_job_object(name))
        for obj in cluster.client.objects(TRAIN_JOBS):
            created = find_condition(obj, "Created") or {}
            assert created["status"] == "True", created["message"]
    assert sorted(name_of(obj) for obj in cluster.jobsets) == [first, second]


def child(namespace: str, name: str = "bait", **metadata: Any) -> Object:
    """A ConfigMap that claims to have been deployed for the TrainJob of the tenant."""
    owners = {"ownerReferences": [controller_reference(train_job_object())], "annotations": {APPLIED_HASH: "x"}}
    labels = {"labels": {HOSTFILE_LABEL: "demo"}}  # or no cache shows it
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace} | owners | labels | metadata,
        "data": {},
    }


@pytest.mark.parametrize("annotations", [{APPLIED_HASH: "x"}, {APPLIED_HASH: "x", DELETE_WHEN_FINISHED: "true"}])
async def test_objects_that_name_a_train_job_of_another_namespace(cluster: Cluster, annotations: Object) -> None:
    """The manager does not delete them, whatever they claim to be."""
    bait = cluster.client.add(child(OTHER, annotations=annotations))
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset("Completed", {"type": "Completed", "status": "True", "reason": "r", "message": "m"})
        assert cluster.client.find(CONFIG_MAPS, "bait", OTHER) == bait


def forged_runtime(name: str) -> Object:
    """A runtime that nobody has allowed."""
    return runtime_object(replicated_job("node", PRIVILEGED)) | {"metadata": {"name": name}}


def forged_snapshot(name: str) -> Object:
    """A snapshot, as the manager would write it, of such a runtime."""
    return make_snapshot(referring("ClusterTrainingRuntime", name), CLUSTER_TRAINING_RUNTIMES, forged_runtime(name))


def of_kind(resource: Resource, **labels: str) -> Object:
    """An object of a kind that does not run pods, which claims to have been deployed for the TrainJob."""
    obj = child("default", labels=labels) | {"apiVersion": resource.api_version, "kind": resource.kind}
    obj["metadata"]["annotations"] |= {RUNTIME_DIGEST: digest_of(forged_runtime("missing"))}
    return obj


@pytest.mark.parametrize(
    "bait",
    [
        pytest.param([], id="alone"),
        pytest.param([child("default")], id="with-a-config-map"),
        pytest.param([of_kind(HORIZONTAL_POD_AUTOSCALERS, **{AUTOSCALER_LABEL: "demo"})], id="with-an-autoscaler"),
        pytest.param([of_kind(POD_GROUPS)], id="with-a-pod-group"),
        pytest.param([of_kind(SERVICES), of_kind(SECRETS)], id="with-service-and-secret"),
    ],
)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("blueprint", ["runtime-image"], id="runtime-exists"),
        pytest.param("missing", [], id="runtime-is-missing"),
    ],
)
async def test_a_forged_snapshot(cluster: Cluster, name: str, expected: list[str], bait: list[Object]) -> None:
    """Who may write ConfigMaps but no runtimes cannot give a TrainJob another template than its runtime's."""
    cluster.client.serve(POD_GROUPS)
    for obj in (forged_snapshot(name), *bait):
        cluster.client.add(obj)
    async with cluster.managed():
        await cluster.put(referring("ClusterTrainingRuntime", name))
        assert images(cluster) == expected
        for obj in cluster.client.objects(CONFIG_MAPS):
            assert not expected or "privileged" not in json.dumps(obj)


async def test_a_snapshot_that_is_forged_afterwards(cluster: Cluster) -> None:
    """What runs stays what it is, also when the training is suspended and resumed."""
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True))
        await cluster.client.delete(CONFIG_MAPS, "demo-runtime-snapshot", "default")
        await cluster.put(forged_snapshot("blueprint"))
        await cluster.change(cluster.train_job, suspend=False)
        assert images(cluster) == ["runtime-image"]
        assert cluster.jobset["spec"]["suspend"] is False


@pytest.mark.parametrize(
    "has_runtime", [pytest.param(True, id="runtime-changed"), pytest.param(False, id="runtime-gone")]
)
@pytest.mark.parametrize("restarts", [False, True])
async def test_a_snapshot_that_is_replaced_before_the_jobset_is_built_anew(
    cluster: Cluster, has_runtime: bool, restarts: bool
) -> None:
    """No pod comes of it: its digest is not the one in the status, which only the manager writes."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        if not restarts:
            await build_anew_on(forged_snapshot("blueprint"), cluster, has_runtime=has_runtime)
    if restarts:
        await build_anew_on(forged_snapshot("blueprint"), cluster, has_runtime=has_runtime)
        async with cluster.managed():
            pass
    assert images(cluster) == []
    created = cluster.condition("Created")
    assert created is not None
    assert created[0] == "False"
    assert (
        "ConfigMap demo-runtime-snapshot data.runtime: Invalid value: does not hold the runtime that the TrainJob was "
        "built on; delete the ConfigMap, and a new snapshot of the runtime will be taken"
    ) in created[2]


async def build_anew_on(snapshot: Object, cluster: Cluster, *, has_runtime: bool) -> None:
    """An administrator deletes the JobSet, a tenant has replaced the snapshot, and the runtime is another."""
    cluster.client.remove(CONFIG_MAPS, "demo-runtime-snapshot", "default")
    cluster.client.add(snapshot)
    if has_runtime:
        cluster.client.add(runtime_object(replicated_job("node", {"name": "trainer", "image": "newer"})))
    else:
        cluster.client.remove(CLUSTER_TRAINING_RUNTIMES, "blueprint")
    await settle()
    cluster.client.remove(JOBSETS, "demo", "default")
    await settle()


async def test_a_snapshot_that_others_have_written_anew_as_it_was(cluster: Cluster) -> None:
    """It is its content that counts, not who wrote it: a restored backup is as good."""
    async with cluster.managed():
        await cluster.put(train_job_object())
    (kept,) = cluster.client.objects(CONFIG_MAPS)
    await build_anew_on(kept | {"metadata": kept["metadata"] | {"uid": "of-the-backup"}}, cluster, has_runtime=False)
    async with cluster.managed():
        assert images(cluster) == ["runtime-image"]


async def test_a_jobset_says_what_it_was_built_on_until_the_status_does(cluster: Cluster) -> None:
    """A manager that stopped before it wrote the status trusts no other snapshot afterwards."""
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True))
    untold = cluster.train_job
    del untold["status"]
    cluster.client.add(untold)
    cluster.client.remove(CONFIG_MAPS, "demo-runtime-snapshot", "default")
    cluster.client.add(forged_snapshot("blueprint"))
    cluster.client.remove(CLUSTER_TRAINING_RUNTIMES, "blueprint")
    async with cluster.managed():
        assert images(cluster) == ["runtime-image"]
        cluster.client.remove(JOBSETS, "demo", "default")
        await settle()
        assert images(cluster) == []


def broken_pod(name: str, **metadata: Any) -> Object:
    """A pod that looks like one of the TrainJob demo and has failed."""
    state = {"terminated": {"exitCode": 9, "finishedAt": "2026-01-01T00:00:00Z", "message": "gotcha"}}
    status = {"phase": "Failed", "containerStatuses": [{"name": "trainer", "state": state}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata(name) | metadata, "status": status}


def labels_with_uid(uid: str) -> Object:
    """Labels of a pod that claims to be of the JobSet with this uid."""
    labels: Object = pod_metadata("any", jobset_uid=uid)["labels"]
    return labels


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"ownerReferences": []}, id="nobody-has-made"),
        pytest.param(
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "evil", "uid": "1", "controller": True}]},
            id="of-another-job",
        ),
        pytest.param({"namespace": OTHER}, id="of-another-namespace"),
    ],
)
@pytest.mark.parametrize("has_uid", [False, True])
async def test_pods_with_forged_labels(cluster: Cluster, metadata: Object, has_uid: bool) -> None:
    """What they say is not reported on the TrainJob, and nobody reads their logs."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        labels = {"labels": labels_with_uid(cluster.jobset["metadata"]["uid"])} if has_uid else {}
        await cluster.put(broken_pod("forged", **labels, **metadata))
        await cluster.run_jobset(
            "Failed", {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "a job failed"}, failed=1
        )
        assert "forged" not in json.dumps(cluster.train_job["status"])
        assert cluster.client.requests_of("log") == []


async def test_the_log_of_a_pod_that_is_its_own(cluster: Cluster) -> None:
    """The check above lets the right ones through."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.put(broken_pod("demo-node-0-0-x"))
        await cluster.run_jobset(
            "Failed", {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "a job failed"}, failed=1
        )
        assert "demo-node-0-0-x" in json.dumps(cluster.train_job["status"])
        assert {request.namespace for request in cluster.client.requests_of("log")} == {"default"}


async def test_a_train_job_that_others_manage(cluster: Cluster) -> None:
    """Nothing is made of it, and its status is left alone."""
    async with cluster.managed():
        await cluster.put(train_job_object(managedBy="kueue.x-k8s.io/multikueue"))
        assert cluster.writes == []


async def test_everything_is_made_in_the_namespace_of_the_train_job(cluster: Cluster) -> None:
    """All that the manager writes for a TrainJob is there, and belongs to it."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        assert {request.namespace for request in cluster.writes} == {"default"}
        for obj in (*cluster.jobsets, *cluster.client.objects(CONFIG_MAPS)):
            assert namespace_of(obj) == "default"
            assert [owner["kind"] for owner in obj["metadata"]["ownerReferences"]] == ["TrainJob"]
