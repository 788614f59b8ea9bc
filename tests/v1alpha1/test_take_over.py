"""TrainJobs that Kubeflow Trainer (Go) has made are taken over as they are (shared: reference on v1alpha1, 7.5)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from e2e import released_manager as released
from tests.controllers.conftest import Cluster
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.plugin_api.component import ADOPTED
from trainer.framework.runtimes.runtimes import RUNTIME_DIGEST
from trainer.kube.objects import Object, annotations_of, find_condition, name_of
from trainer.kube.resource import CONFIG_MAPS, SECRETS
from trainer.plugins.coscheduling import POD_GROUPS
from trainer.plugins.workload.versions import V1BETA1
from trainer.v1alpha1.client import SERVED
from trainer.v1alpha1.discovery import Served
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

RUNTIMES = SERVED[CLUSTER_TRAINING_RUNTIMES]
TORCH = released.runtime(
    "blueprint", released.replicated_job("node", ancestor="trainer"), mlPolicy={"numNodes": 1, "torch": {}}
)
GANG = TORCH | {"spec": TORCH["spec"] | {"podGroupPolicy": {"coscheduling": {"scheduleTimeoutSeconds": 60}}}}
MPI = released.runtime(
    "blueprint",
    released.replicated_job("node"),
    released.replicated_job("launcher", ancestor="trainer", depends_on="node"),
    mlPolicy={
        "numNodes": 1,
        "mpi": {
            "numProcPerNode": 1,
            "mpiImplementation": "OpenMPI",
            "sshAuthMountPath": "/root/.ssh",
            "runLauncherAsNode": True,
        },
    },
)
KINDS = (JOBSETS, CONFIG_MAPS, SECRETS, POD_GROUPS)
RUNNING: Object = {"jobsStatus": [released.jobs_status(active=1, ready=1)]}
SUSPENDED: Object = {"conditions": [released.SUSPENDED], "jobsStatus": [released.jobs_status(suspended=1)]}
SELECTOR = {"pool": "spot"}
PATCH: Object = {
    "manager": "kueue.x-k8s.io/manager",
    "trainingRuntimeSpec": {
        "template": {
            "spec": {
                "replicatedJobs": [
                    {"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": SELECTOR}}}}}
                ]
            }
        }
    },
}


@pytest.fixture(params=[True, False], ids=["own-crds", "released-crds"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """An API server that serves v1alpha1."""
    cluster = Cluster(Served("v1alpha1", is_extended=request.param))
    cluster.client.serve(POD_GROUPS)
    return cluster


async def leave(cluster: Cluster, runtime: Object, status: Object, **spec: Any) -> Object:
    """The Go manager has made a TrainJob, and is gone."""
    blueprint = cluster.client.add(runtime)
    job = released.train_job("demo", "blueprint", trainer={"command": ["train"]}, **spec)
    job["metadata"] |= {"namespace": "default", "creationTimestamp": "2025-12-31T00:00:00Z"}
    owner = cluster.client.add(job | {"status": status})
    for child in released.children(owner, blueprint):
        resource = next(each for each in KINDS if each.kind == child["kind"])
        await cluster.client.apply(resource, child, field_manager=released.FIELD_MANAGER, force=True)
    counts = {"restarts": 0, "replicatedJobsStatus": status["jobsStatus"]}
    cluster.client.add(cluster.jobset | {"status": counts})
    cluster.forget_requests()
    return owner


def pods_of(cluster: Cluster) -> dict[str, Object]:
    """The pod templates of the JobSet, by replicated Job."""
    jobs = cluster.jobset["spec"]["replicatedJobs"]
    return {job["name"]: job["template"]["spec"]["template"] for job in jobs}


def is_suspended(cluster: Cluster) -> bool:
    """Whether the JobSet is."""
    found: bool = cluster.jobset["spec"]["suspend"]
    return found


def present(cluster: Cluster) -> dict[str, str]:
    """Kind and name of all children, with their uids."""
    return {
        f"{resource.kind}/{name_of(obj)}": obj["metadata"]["uid"]
        for resource in KINDS
        for obj in cluster.client.objects(resource)
    }


def specs(cluster: Cluster) -> list[Object]:
    """All that children say beyond their metadata, except for snapshots."""
    found = [obj for resource in KINDS for obj in cluster.client.objects(resource)]
    return [
        {name: value for name, value in obj.items() if name != "metadata"}
        for obj in found
        if not name_of(obj).endswith("-runtime-snapshot")
    ]


EDITED = released.runtime("blueprint", released.replicated_job("other", ancestor="trainer"))
"""What has become of the runtime since."""

runtimes = pytest.mark.parametrize(
    "runtime", [pytest.param(TORCH, id="torch"), pytest.param(GANG, id="gang"), pytest.param(MPI, id="mpi")]
)


def created(cluster: Cluster) -> str:
    """The message of the condition Created, which clients of v1alpha1 do not see."""
    found = find_condition({"status": cluster.status}, "Created")
    return "" if found is None else found["message"]


@pytest.mark.parametrize("is_edited", [pytest.param(False, id="runtime-as-it-was"), pytest.param(True, id="edited")])
@runtimes
async def test_what_runs(cluster: Cluster, runtime: Object, is_edited: bool) -> None:
    """It goes on: nothing is made or changed but metadata, and nothing is written again."""
    await leave(cluster, runtime, RUNNING)
    before, children = specs(cluster), present(cluster)
    if is_edited:
        cluster.client.add(EDITED)
    async with cluster.managed():
        await cluster.resync()
        assert (specs(cluster), present(cluster)) == (before, children)
        assert {*cluster.jobset["metadata"]["annotations"]} == {ADOPTED, RUNTIME_DIGEST}
        assert cluster.train_job["status"].get("conditions", []) == []
        assert cluster.status["state"] == "Running"
        assert cluster.status["startTime"] == "2025-12-31T00:00:00Z"
        assert created(cluster) == "Succeeded to create Jobs"
        assert cluster.counted() == {"created": 0, "completed": 0, "failed": 0}
        assert cluster.timed() == 0
        cluster.forget_requests()
        await cluster.resync()
        assert {request.resource for request in cluster.client.requests} <= {SERVED[TRAIN_JOBS]}
    assert [event for event in cluster.events if event[0] != "Normal"] == []


@pytest.mark.parametrize(
    "has_snapshot", [pytest.param(True, id="snapshot"), pytest.param(False, id="of-an-early-release")]
)
async def test_gang_scheduling_by_the_setting(cluster: Cluster, has_snapshot: bool) -> None:
    """It is for what is built from now on: what runs stays as it is."""
    await leave(cluster, TORCH, RUNNING)
    before = specs(cluster)
    if not has_snapshot:
        cluster.client.remove(CONFIG_MAPS, "demo-runtime-snapshot", "default")
    async with cluster.managed(gangScheduling="coscheduling"):
        await cluster.resync()
        assert specs(cluster) == before
        assert created(cluster) == "Succeeded to create Jobs"
        (snapshot,) = cluster.client.objects(CONFIG_MAPS)
        assert "podGroupPolicy" not in snapshot["data"]["runtime"]


@runtimes
async def test_suspending_what_runs(cluster: Cluster, runtime: Object) -> None:
    """Nothing but `suspend` changes; resumed, the pods are those of before, with the keys of before."""
    await leave(cluster, runtime, RUNNING)
    pods, children = pods_of(cluster), present(cluster)
    cluster.client.add(EDITED)
    async with cluster.managed():
        for suspend in (True, False):
            await cluster.change(cluster.train_job, suspend=suspend)
            assert is_suspended(cluster) is suspend
            assert {name: pod["spec"] for name, pod in pods_of(cluster).items()} == {
                name: pod["spec"] for name, pod in pods.items()
            }
        assert present(cluster) == children
        assert created(cluster) == "Succeeded to create Jobs"
    assert cluster.status["state"] == "Running"


@pytest.mark.parametrize("is_edited", [pytest.param(False, id="runtime-as-it-was"), pytest.param(True, id="edited")])
@runtimes
async def test_what_is_suspended(cluster: Cluster, runtime: Object, is_edited: bool) -> None:
    """It stays so, and starts with what its queue patches in, on the runtime that it was made on."""
    await leave(cluster, runtime, SUSPENDED, suspend=True)
    pods, children = pods_of(cluster), present(cluster)
    if is_edited:
        cluster.client.add(EDITED)
    async with cluster.managed():
        assert is_suspended(cluster)
        assert cluster.train_job["status"]["conditions"][0]["lastTransitionTime"] == released.TIME
        assert cluster.status["state"] == "Suspended"
        await cluster.change(cluster.train_job, runtimePatches=[PATCH])
        await cluster.change(cluster.train_job, suspend=False)
        assert not is_suspended(cluster)
        pods["node"]["spec"]["nodeSelector"] = SELECTOR
        assert {name: pod["spec"] for name, pod in pods_of(cluster).items()} == {
            name: pod["spec"] for name, pod in pods.items()
        }
        assert present(cluster) == children
        assert created(cluster) == "Succeeded to create Jobs"
    assert [event for event in cluster.events if event[0] != "Normal"] == []


@pytest.mark.parametrize("suspend", [True, False])
async def test_what_was_asked_while_no_manager_ran(cluster: Cluster, suspend: bool) -> None:
    """A TrainJob that was suspended or resumed in between is so at once."""
    owner = await leave(cluster, TORCH, RUNNING if suspend else SUSPENDED, suspend=not suspend)
    cluster.client.add(owner | {"spec": owner["spec"] | {"suspend": suspend}})
    async with cluster.managed():
        assert is_suspended(cluster) is suspend
    shown = find_condition(cluster.train_job, "Suspended")
    assert (shown is not None and shown["status"] == "True") is suspend
    assert suspend or not cluster.train_job["status"].get("conditions"), (
        "a column of the released CRDs has the last one"
    )


async def test_what_has_ended_while_no_manager_ran(cluster: Cluster) -> None:
    """The end of the JobSet becomes that of the TrainJob."""
    await leave(cluster, MPI, RUNNING)
    cluster.client.add(EDITED)
    before = present(cluster)
    await cluster.run_jobset("Completed", {"type": "Completed", "status": "True", "reason": "R", "message": "m"})
    async with cluster.managed():
        (complete,) = cluster.train_job["status"]["conditions"]
        assert (complete["type"], complete["reason"], complete["message"]) == ("Complete", "R", "m")
        assert present(cluster) == before


@pytest.mark.parametrize(
    ("end", "state"), [pytest.param(released.COMPLETE, "Complete"), pytest.param(released.FAILED, "Failed")]
)
@pytest.mark.parametrize("has_jobset", [True, False])
async def test_what_has_ended(cluster: Cluster, end: Object, state: str, has_jobset: bool) -> None:
    """Its conditions and counts stay as they are, nothing is made again, and nothing is counted or reported again."""
    conditions = [released.RESUMED, end]
    await leave(cluster, TORCH, {"conditions": conditions, "jobsStatus": [released.jobs_status(succeeded=1)]})
    if not has_jobset:
        cluster.client.remove(JOBSETS, "demo", "default")
    before = present(cluster)
    async with cluster.managed():
        assert cluster.train_job["status"]["conditions"] == conditions
        assert cluster.train_job["status"]["jobsStatus"] == [released.jobs_status(succeeded=1)]
        assert cluster.status["state"] == state
        assert present(cluster) == before
        assert cluster.counted() == {"created": 0, "completed": 0, "failed": 0}
    assert cluster.events == []


async def test_what_has_no_runtime_any_more(cluster: Cluster) -> None:
    """What was made by releases without snapshots runs on, and can be suspended."""
    await leave(cluster, TORCH, RUNNING)
    cluster.client.remove(CONFIG_MAPS, "demo-runtime-snapshot", "default")
    cluster.client.remove(RUNTIMES, "blueprint")
    before = specs(cluster)
    async with cluster.managed():
        assert specs(cluster) == before
        assert cluster.status["state"] == "Running"
        assert "there is no ClusterTrainingRuntime of this name; create it again" in created(cluster)
        await cluster.change(cluster.train_job, suspend=True)
        assert is_suspended(cluster)


@pytest.mark.parametrize("status", [pytest.param(RUNNING, id="running"), pytest.param(SUSPENDED, id="suspended")])
async def test_a_snapshot_that_is_exchanged(cluster: Cluster, status: Object) -> None:
    """Who may write ConfigMaps, but no JobSets, decides nothing about what was taken over before either."""
    await leave(cluster, TORCH, status, suspend=status is SUSPENDED)
    cluster.client.add(EDITED)
    async with cluster.managed():
        pods = pods_of(cluster)
    snapshot = cluster.client.find(CONFIG_MAPS, "demo-runtime-snapshot", "default")
    assert snapshot is not None
    forged = released.replicated_job("node", ancestor="trainer", nodeSelector={"forged": "yes"})
    content = released.runtime("blueprint", forged, mlPolicy=TORCH["spec"]["mlPolicy"])
    cluster.client.remove(CONFIG_MAPS, "demo-runtime-snapshot", "default")
    cluster.client.add(snapshot | {"data": {"runtime": json.dumps(content)}})
    async with cluster.managed():
        await cluster.change(cluster.train_job, suspend=True)
        await cluster.change(cluster.train_job, suspend=False)
        assert not is_suspended(cluster)
        assert pods_of(cluster)["node"]["spec"] == pods["node"]["spec"]
        assert "does not hold the runtime that the TrainJob was built on" in created(cluster)


async def test_a_snapshot_of_what_was_not_built(cluster: Cluster) -> None:
    """Who may write ConfigMaps, but no JobSets, decides nothing: the runtime of today counts."""
    owner = await leave(cluster, TORCH, RUNNING)
    cluster.client.remove(JOBSETS, "demo", "default")
    forged = released.runtime("blueprint", released.replicated_job("forged", ancestor="trainer"))
    cluster.client.add(released.snapshot(owner, forged))
    async with cluster.managed():
        await cluster.clock.advance(10)
        assert list(pods_of(cluster)) == ["node"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [", id="no-yaml"),
        pytest.param("a: &a [x]\nb: [*a, *a]", id="aliases"),
        pytest.param("[]", id="a-list"),
        pytest.param("kind: Pod", id="another-kind"),
        pytest.param("---\na: 1\n---\nb: 1", id="two"),
    ],
)
async def test_a_snapshot_that_cannot_be_read(cluster: Cluster, text: str) -> None:
    """What runs goes on, and the message says which ConfigMap is wrong."""
    owner = await leave(cluster, TORCH, RUNNING)
    cluster.client.add(released.snapshot(owner, TORCH) | {"data": {"runtime": text}})
    before = specs(cluster)
    async with cluster.managed():
        assert specs(cluster) == before
        assert "ConfigMap demo-runtime-snapshot data.runtime: Invalid value: does not hold a runtime" in created(
            cluster
        )


async def test_the_way_back(cluster: Cluster) -> None:
    """The snapshot holds the runtime as v1alpha1 has it, in what the Go manager reads; so does one of ours."""
    await leave(cluster, MPI, SUSPENDED, suspend=True)
    taken_over = await stored_snapshot(cluster)
    job = cluster.train_job
    for resource, name in ((JOBSETS, "demo"), (CONFIG_MAPS, "demo-runtime-snapshot"), (SERVED[TRAIN_JOBS], "demo")):
        cluster.client.remove(resource, name, "default")
    cluster.client.add({name: value for name, value in job.items() if name != "status"})
    assert taken_over == await stored_snapshot(cluster)
    assert taken_over["apiVersion"] == released.API_VERSION
    assert taken_over["spec"] == MPI["spec"]
    for child in (cluster.jobset, *cluster.client.objects(CONFIG_MAPS)):
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["apiVersion"], owner["kind"], owner["name"]) == (released.API_VERSION, "TrainJob", "demo")
        assert owner["controller"] is True


async def stored_snapshot(cluster: Cluster) -> Object:
    """The runtime in the snapshot that a manager leaves."""
    async with cluster.managed():
        await settle()
    found = cluster.client.find(CONFIG_MAPS, "demo-runtime-snapshot", "default")
    assert found is not None
    assert found["immutable"] is True
    runtime: Object = yaml.safe_load(found["data"]["runtime"])
    return runtime


@pytest.mark.parametrize("kind", ["ClusterTrainingRuntime", "TrainingRuntime"])
async def test_the_finalizer_of_early_releases(cluster: Cluster, kind: str) -> None:
    """It goes, so that the runtime can be deleted while TrainJobs use it; finalizers of others stay."""
    runtime = TORCH | {"kind": kind}
    own = {"namespace": "default"} if kind == "TrainingRuntime" else {}
    finalizers = ["example.com/theirs", released.FINALIZER]
    resource = next(each for each in SERVED.values() if each.kind == kind)
    cluster.client.add(runtime | {"metadata": runtime["metadata"] | own | {"finalizers": finalizers}})
    cluster.client.add(runtime | {"metadata": {"name": "other", "finalizers": ["example.com/theirs"]} | own})
    async with cluster.managed():
        found = cluster.client.find(resource, "blueprint", own.get("namespace", ""))
        assert found is not None
        assert found["metadata"]["finalizers"] == ["example.com/theirs"]
        assert found["spec"] == TORCH["spec"]
        assert [request.name for request in cluster.client.requests_of("patch")] == ["blueprint"]
        cluster.forget_requests()
        await cluster.put(found | {"metadata": found["metadata"] | {"finalizers": [released.FINALIZER]}})
        assert len(cluster.client.requests_of("patch")) == 1


@pytest.mark.parametrize("suspend", [True, False])
@pytest.mark.parametrize("is_adopted", [True, False])
async def test_nothing_to_do(cluster: Cluster, suspend: bool, is_adopted: bool) -> None:
    """A reconcile that finds everything as it is sends no request, whatever the definitions keep of a status."""
    if is_adopted:
        await leave(cluster, TORCH, SUSPENDED if suspend else RUNNING, suspend=suspend)
    else:
        cluster.client.add(TORCH)
        job = released.train_job("demo", "blueprint", trainer={"command": ["train"]}, suspend=suspend)
        cluster.client.add(job | {"metadata": {"name": "demo", "namespace": "default"}})
    async with cluster.managed():
        for number in range(2):
            cluster.forget_requests()
            jobset = cluster.jobset
            metadata = jobset["metadata"] | {"labels": {"touched": str(number)}}
            await cluster.put(jobset | {"metadata": metadata})
        assert cluster.client.requests == []


async def test_nothing_of_its_own(cluster: Cluster) -> None:
    """A gang that is suspended while the cluster does not serve its PodGroups keeps the record of its runtime."""
    kinds = V1BETA1.pod_groups, V1BETA1.workloads
    for kind in kinds:
        cluster.client.serve(kind)
    cluster.client.add(TORCH | {"spec": TORCH["spec"] | {"podGroupPolicy": {"workload": {}}}})
    async with cluster.managed():
        job = released.train_job("demo", "blueprint", trainer={"command": ["train"]})
        await cluster.put(job | {"metadata": job["metadata"] | {"namespace": "default"}})
        digest = annotations_of(cluster.jobset)[RUNTIME_DIGEST]
        for kind in kinds:
            cluster.client.withdraw(kind)
        await cluster.clock.advance(60)
        await cluster.change(cluster.train_job, suspend=True)
        await cluster.clock.advance(10)
        found = annotations_of(cluster.jobset)
        assert (is_suspended(cluster), found.get(RUNTIME_DIGEST), ADOPTED in found) == (True, digest, False)
