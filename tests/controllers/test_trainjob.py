"""A TrainJob from submission to its end, and everything that can go wrong on the way."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.controllers.conftest import Cluster
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.controllers.trainjob import TrainJobController
from trainer.framework.deploying.child import APPLIED_HASH, SPEC_HASH
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.plugin_context import CacheReader
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import DeleteOptions, ObjectRequest, Verb
from trainer.kube.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServiceUnavailableError,
    TransportError,
)
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, key_of, name_of
from trainer.kube.resource import CONFIG_MAPS
from trainer.manager import built_in_plugins
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

CREATED = ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")
COMPLETED = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "jobset completed"}
FAILED = {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "a job failed"}


async def test_a_train_job_runs_to_completion(cluster: Cluster) -> None:
    """It becomes a JobSet of its name, and its status follows that of the JobSet up to the end."""
    async with cluster.managed():
        await cluster.put(train_job_object(trainer={"numNodes": 2}))
        assert cluster.jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] == 2
        assert cluster.condition("Created") == CREATED
        assert cluster.condition("Suspended") is None
        assert cluster.train_job["status"]["state"] == "Created"

        await cluster.run_jobset(active=1)
        assert cluster.train_job["status"]["state"] == "Created"
        await cluster.run_jobset(active=1, ready=1)
        assert cluster.train_job["status"]["state"] == "Running"
        assert cluster.train_job["status"]["jobsStatus"] == [
            {"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
        ]

        await cluster.run_jobset("Completed", COMPLETED, succeeded=1)
        assert cluster.condition("Complete") == ("True", "AllJobsCompleted", "jobset completed")
        assert cluster.train_job["status"]["state"] == "Complete"
    assert cluster.events == []


async def test_suspend_and_resume(cluster: Cluster) -> None:
    """The JobSet is suspended and resumed with the TrainJob; the condition tells since when."""
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True))
        assert cluster.jobset["spec"]["suspend"]
        assert cluster.condition("Suspended") == ("True", "Suspended", "TrainJob is suspended")
        assert cluster.train_job["status"]["state"] == "Suspended"

        await cluster.clock.advance(60)
        await cluster.change(cluster.train_job, suspend=False)
        assert not cluster.jobset["spec"]["suspend"]
        assert cluster.condition("Suspended") == ("False", "Resumed", "TrainJob is resumed")
        times = {c["type"]: c["lastTransitionTime"] for c in cluster.train_job["status"]["conditions"]}
        assert times == {"Created": "2026-01-01T00:00:00Z", "Suspended": "2026-01-01T00:01:00Z"}

        await cluster.run_jobset(ready=1)
        assert cluster.train_job["status"]["state"] == "Running"
        await cluster.change(cluster.train_job, suspend=True)
        assert cluster.jobset["spec"]["suspend"]
        assert cluster.train_job["status"]["state"] == "Suspended"


async def test_a_running_jobset_is_never_rebuilt(cluster: Cluster) -> None:
    """Edits of TrainJob and runtime do not reach a JobSet that runs."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        before = cluster.jobset
        cluster.forget_requests()
        await cluster.change(cluster.train_job, trainer={"image": "new"})
        await cluster.put(runtime_object(replicated_job("Node", {"name": "trainer", "image": "newer"})))
        assert cluster.jobset == before
        (write,) = cluster.writes
        assert (write.resource, write.subresource) == (TRAIN_JOBS, "status")
        assert cluster.train_job["status"]["observedGeneration"] == cluster.train_job["metadata"]["generation"]


async def test_changes_that_come_too_late_are_reported(cluster: Cluster) -> None:
    """While suspended, labels change; an image cannot, and the condition says so."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.change(cluster.train_job, suspend=True)
        await cluster.change(cluster.train_job, trainer={"image": "new"}, labels={"queue": "small"})
        template = cluster.jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        assert template["metadata"]["labels"] == {"queue": "small"}
        assert template["spec"]["containers"][0]["image"] == "runtime-image"
        created = cluster.condition("Created")
        assert created is not None
        assert created[2].startswith(
            "Succeeded to create Jobs; changed too late, delete the TrainJob and submit it again: JobSet spec."
        )
        assert "containers[trainer].image" in created[2]


@pytest.mark.parametrize("knows", [True, False])
async def test_what_another_version_has_built_differently(cluster: Cluster, knows: bool) -> None:
    """Nobody has changed it too late, and nothing is said of it; a change of the TrainJob that comes later is.

    An earlier version may have noted for which spec it has built, or not.
    """
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True))
        built = copy.deepcopy(cluster.jobset)
        (job,) = built["spec"]["replicatedJobs"]
        (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
        container["image"] = "image-of-before"
        built["metadata"]["annotations"][APPLIED_HASH] = "of-before"
        if not knows:
            del built["metadata"]["annotations"][SPEC_HASH]
        await cluster.put(built)
        assert cluster.jobset["metadata"]["annotations"].keys() >= {APPLIED_HASH, SPEC_HASH}
        assert cluster.jobset["metadata"]["annotations"][APPLIED_HASH] != "of-before"
        created = cluster.condition("Created")
        assert created is not None
        assert created[2] == "Succeeded to create Jobs"

        await cluster.change(cluster.train_job, trainer={"image": "new"})
        created = cluster.condition("Created")
        assert created is not None
        assert "changed too late" in created[2]


OVERRIDES = [{"targetJobs": [{"name": "node"}]}] * 17


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(
            {"podSpecOverrides": OVERRIDES},
            "spec.podSpecOverrides: Too many: 17: must have at most 16 items",
            id="list",
        ),
    ],
)
async def test_a_train_job_that_was_stored_before_the_bounds(cluster: Cluster, spec: Object, problem: str) -> None:
    """Nothing is built of it, and the condition names the field; what runs goes on."""
    async with cluster.managed():
        await cluster.put(train_job_object(**spec))
        created = cluster.condition("Created")
        assert created is not None
        assert created[:2] == ("False", "JobsBuildFailed")
        assert problem in created[2]
        assert cluster.jobsets == []


async def test_a_runtime_that_was_stored_before_the_bounds(cluster: Cluster) -> None:
    """Nothing is built on it, and the condition names its field."""
    async with cluster.managed():
        container = {"name": "trainer", "image": "x", "args": ["x"] * 4097}
        await cluster.put(runtime_object(replicated_job("node", container)))
        await cluster.put(train_job_object())
        created = cluster.condition("Created")
        assert created is not None
        assert created[:2] == ("False", "JobsBuildFailed")
        assert "args: Too many: 4097: must have at most 4096 items" in created[2]
        assert cluster.jobsets == []


async def test_a_missing_runtime_is_reported_and_waited_for(cluster: Cluster) -> None:
    """The status names the missing runtime, no request is sent meanwhile, and the TrainJob starts when the runtime
    appears."""
    message = (
        'Failed to build Jobs: spec.runtimeRef.name: Not found: "other": there is no ClusterTrainingRuntime of this '
        "name; create it, or change spec.runtimeRef. There is blueprint"
    )
    async with cluster.managed():
        await cluster.put(train_job_object(runtimeRef={"name": "other"}))
        assert cluster.condition("Created") == ("False", "JobsBuildFailed", message)
        assert cluster.train_job["status"]["state"] == "Blocked"
        assert cluster.jobsets == []
        assert cluster.events == [("Warning", "JobsBuildFailed", message)]

        cluster.forget_requests()
        await cluster.clock.advance(120)
        await cluster.resync()
        assert cluster.writes == []

        other = runtime_object()
        other["metadata"]["name"] = "other"
        await cluster.put(other)
        assert cluster.condition("Created") == CREATED
        assert len(cluster.jobsets) == 1


@pytest.mark.parametrize(
    ("namespace", "found"), [pytest.param("default", True, id="same"), pytest.param("other", False, id="other")]
)
async def test_training_runtimes_are_of_the_same_namespace(cluster: Cluster, namespace: str, found: bool) -> None:
    """A TrainingRuntime serves TrainJobs of its own namespace only."""
    local = runtime_object() | {"kind": "TrainingRuntime", "metadata": {"name": "local", "namespace": namespace}}
    async with cluster.managed():
        await cluster.put(train_job_object(runtimeRef={"name": "local", "kind": "TrainingRuntime"}))
        assert cluster.condition("Created") == (
            "False",
            "JobsBuildFailed",
            (
                'Failed to build Jobs: spec.runtimeRef.name: Not found: "local": there is no TrainingRuntime of this '
                "name in namespace default; create it, or change spec.runtimeRef"
            ),
        )
        await cluster.put(local)
        assert bool(cluster.jobsets) is found


@pytest.mark.parametrize("gone", [pytest.param(True, id="deleted"), pytest.param(False, id="made-anew")])
async def test_a_runtime_that_changes_never_reaches_what_was_built(cluster: Cluster, gone: bool) -> None:
    """The snapshot of the first build counts: nothing is rebuilt, suspension works, and no condition changes."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.client.delete(CLUSTER_TRAINING_RUNTIMES, "blueprint")
        if not gone:
            cluster.client.add(runtime_object(replicated_job("node", {"name": "trainer", "image": "another"})))
        await settle()
        before = cluster.jobset["spec"]
        for suspend in (True, False):
            await cluster.change(cluster.train_job, suspend=suspend)
            assert cluster.jobset["spec"] == before | {"suspend": suspend}
            assert cluster.condition("Created") == CREATED
            cluster.forget_requests()
            await cluster.resync()
            assert cluster.writes == []
        await cluster.run_jobset("Completed", COMPLETED, succeeded=1)
        assert cluster.train_job["status"]["state"] == "Complete"


async def test_without_runtime_and_snapshot_suspension_still_works(cluster: Cluster) -> None:
    """Jobs of an older controller, which took no snapshots, go on when their runtime is gone; the condition says so."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.client.delete(CLUSTER_TRAINING_RUNTIMES, "blueprint")
        await cluster.client.delete(CONFIG_MAPS, "demo-runtime-snapshot", "default")
        await settle()
        created = cluster.condition("Created")
        assert created is not None
        assert created[:2] == CREATED[:2]
        assert created[2].startswith(
            "Succeeded to create Jobs; later changes, except of suspend, are not applied: spec.runtimeRef.name: "
            'Not found: "blueprint": there is no ClusterTrainingRuntime of this name; create it again'
        )
        before = cluster.jobset["spec"]
        await cluster.change(cluster.train_job, suspend=True)
        assert cluster.jobset["spec"] == before | {"suspend": True}


async def test_without_runtime_and_snapshot_the_other_objects_stay(cluster: Cluster) -> None:
    """What cannot be built at the moment is no reason to delete what a training still needs."""
    nodes = replicated_job("node"), replicated_job("launcher")
    cluster.client.add(runtime_object(*nodes, policy={"numNodes": 2, "mpi": {"numProcPerNode": 1}}))
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.client.delete(CLUSTER_TRAINING_RUNTIMES, "blueprint")
        await cluster.client.delete(CONFIG_MAPS, "demo-runtime-snapshot", "default")
        await settle()
        created = cluster.condition("Created")
        assert created is not None
        assert "later changes, except of suspend, are not applied" in created[2]
        assert [name_of(obj) for obj in cluster.client.objects(CONFIG_MAPS)] == ["demo-mpi-hostfile"]


async def test_without_runtime_snapshot_and_jobset_nothing_is_created(cluster: Cluster) -> None:
    """Jobs that are gone and cannot be made again are not called created; the runtime heals it."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.client.delete(CLUSTER_TRAINING_RUNTIMES, "blueprint")
        await cluster.client.delete(CONFIG_MAPS, "demo-runtime-snapshot", "default")
        await cluster.client.delete(JOBSETS, "demo", "default")
        await settle()
        created = cluster.condition("Created")
        assert created is not None
        assert created[:2] == ("False", "JobsBuildFailed")
        assert 'spec.runtimeRef.name: Not found: "blueprint"' in created[2]
        assert cluster.train_job["status"]["state"] == "Blocked"
        await cluster.put(runtime_object())
        assert cluster.condition("Created") == CREATED
        assert len(cluster.jobsets) == 1


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        pytest.param(InvalidError(422, "spec.x: Invalid value"), "spec.x: Invalid value", id="invalid"),
        pytest.param(ForbiddenError(403, "quota exceeded"), "quota exceeded", id="forbidden"),
        pytest.param(
            NotFoundError(404, "404 page not found"),
            "jobsets.jobset.x-k8s.io: Forbidden: the API server does not serve them; "
            "install the CRD jobsets.jobset.x-k8s.io",
            id="no-jobset-crd",
        ),
    ],
)
async def test_an_object_that_is_not_accepted(cluster: Cluster, error: ApiError, reported: str) -> None:
    """The user gets the answer of the API server, and the request is retried."""
    async with cluster.managed():
        cluster.client.faults.fail(error, verb="apply", resource=JOBSETS)
        await cluster.put(train_job_object())
        message = f"Failed to create Jobs: {reported}"
        assert cluster.condition("Created") == ("False", "JobsCreationFailed", message)
        assert cluster.events == [("Warning", "JobsCreationFailed", message)]
        await cluster.clock.advance(1)
        assert cluster.condition("Created") == CREATED


async def test_a_change_that_is_not_accepted(cluster: Cluster) -> None:
    """Jobs that exist stay created; that a change of theirs failed is reported, and retried."""
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True))
        cluster.client.faults.fail(ForbiddenError(403, "not now"), verb="apply", resource=JOBSETS)
        await cluster.change(cluster.train_job, suspend=False)
        message = "Succeeded to create Jobs; later changes are not applied: not now"
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", message)
        await cluster.clock.advance(1)
        assert cluster.condition("Created") == CREATED
        assert not cluster.jobset["spec"]["suspend"]


async def test_a_runtime_that_cannot_be_read(cluster: Cluster) -> None:
    """A runtime that does not fit its schema is named together with the field."""
    cluster.client.add(runtime_object(policy={"torch": {}, "jax": {}}))
    async with cluster.managed():
        await cluster.put(train_job_object())
        assert cluster.condition("Created") == (
            "False",
            "JobsBuildFailed",
            (
                "Failed to build Jobs: ClusterTrainingRuntime/blueprint spec.mlPolicy: "
                "Invalid value: only one of torch, mpi, jax, xgboost, tensorflow, paddle, flux may be set"
            ),
        )


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ConflictError(409, "changed meanwhile"), id="conflict"),
        pytest.param(ServiceUnavailableError(503, "starting"), id="unavailable"),
        pytest.param(TransportError("connection reset"), id="no-answer"),
    ],
)
async def test_hiccups_of_the_cluster_are_not_reported(cluster: Cluster, error: Exception) -> None:
    """What a retry fixes does not reach the user."""
    async with cluster.managed():
        cluster.client.faults.fail(error, verb="apply", resource=JOBSETS)
        await cluster.put(train_job_object())
        await cluster.clock.advance(1)
        assert cluster.condition("Created") == CREATED
    assert cluster.events == []


THEIRS: Object = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "demo", "namespace": "default"},
    "spec": {"suspend": True},
    "status": {"terminalState": "Completed"},
}


async def test_a_jobset_of_somebody_else_is_not_adopted(cluster: Cluster) -> None:
    """It stays as it is, its status is not mirrored, and the TrainJob starts when it is gone."""
    cluster.client.add(THEIRS)
    with capture_logs() as logs:
        async with cluster.managed():
            await cluster.put(train_job_object())
    assert "exists and does not belong" in next(entry for entry in logs if "failures" in entry)["error"]
    assert not any("exc_info" in entry for entry in logs), "it is no defect of ours"
    async with cluster.managed():
        created = cluster.condition("Created")
        assert created is not None
        assert created[:2] == ("False", "JobsCreationFailed")
        assert "exists and does not belong to this TrainJob" in created[2]
        assert cluster.condition("Complete") is None
        assert "ownerReferences" not in cluster.jobset["metadata"]
        await cluster.clock.advance(3600)
        await cluster.client.delete(JOBSETS, "demo", "default")
        await settle()
        assert cluster.condition("Created") == CREATED


@pytest.mark.parametrize(
    ("managed_by", "ours"),
    [
        pytest.param(None, True, id="absent"),
        pytest.param("kubeflow.org/trainjob-controller", True, id="us"),
        pytest.param("kueue.x-k8s.io/multikueue", False, id="kueue"),
    ],
)
async def test_managed_by(cluster: Cluster, managed_by: str | None, ours: bool) -> None:
    """TrainJobs that somebody else manages are left alone."""
    async with cluster.managed():
        spec: dict[str, Any] = {} if managed_by is None else {"managedBy": managed_by}
        await cluster.put(train_job_object(**spec))
        assert bool(cluster.jobsets) is ours
        assert ("status" in cluster.train_job) is ours


async def test_a_train_job_that_is_being_deleted_is_left_alone(cluster: Cluster) -> None:
    """Its children go with it, so nothing is created any more."""
    obj = train_job_object()
    obj["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/wait"]}
    async with cluster.managed():
        await cluster.put(obj)
        assert cluster.writes == []


async def test_a_jobset_of_somebody_else_in_place_of_ours(cluster: Cluster) -> None:
    """A TrainJob whose Jobs are gone is not called created because others have made some under its name."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        assert cluster.condition("Created") == CREATED
    cluster.client.remove(JOBSETS, "demo", "default")
    cluster.client.add(THEIRS)
    async with cluster.managed():
        created = cluster.condition("Created")
        assert created is not None
        assert created[:2] == ("False", "JobsCreationFailed")
        assert "exists and does not belong to this TrainJob" in created[2]


async def test_a_deleted_jobset_comes_back(cluster: Cluster) -> None:
    """As long as the TrainJob has not finished, its JobSet is created again."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.client.delete(JOBSETS, "demo", "default", DeleteOptions())
        await settle()
        assert len(cluster.jobsets) == 1


async def test_a_finished_train_job_never_gets_its_jobset_back(cluster: Cluster) -> None:
    """Not even when the cache does not know yet that it has finished."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset("Completed", COMPLETED, succeeded=1)
        await cluster.client.delete(JOBSETS, "demo", "default")
        await settle()
        assert cluster.jobsets == []
        assert cluster.train_job["status"]["state"] == "Complete"
        assert cluster.train_job["status"]["jobsStatus"][0]["succeeded"] == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            {
                "status": {
                    "conditions": [
                        {"type": "Complete", "status": "True", "reason": "r", "message": "", "lastTransitionTime": "t"}
                    ]
                }
            },
            id="finished",
        ),
        pytest.param({"metadata": {"name": "demo", "namespace": "default", "uid": "another"}}, id="successor"),
    ],
)
async def test_a_cache_that_lags_behind_does_not_bring_the_jobset_back(cluster: Cluster, change: Object) -> None:
    """Before objects of a created TrainJob are created again, the API server is asked how it is."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        current = cluster.train_job | change
        send = cluster.client.send

        async def answer(request: ObjectRequest) -> Object | None:
            answered = await send(request)
            return current if request.verb is Verb.GET else answered

        cluster.client.send = answer  # type: ignore[method-assign]
        await cluster.client.delete(JOBSETS, "demo", "default")
        await settle()
        assert cluster.jobsets == []


async def test_progress_is_not_erased(cluster: Cluster) -> None:
    """What `trainer-progress` writes into the status stays through all our writes."""
    progress = {"progressPercentage": 45, "lastUpdatedTime": "2026-01-01T00:00:00Z"}
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.client.apply(
            TRAIN_JOBS,
            {
                "apiVersion": TRAIN_JOBS.api_version,
                "kind": "TrainJob",
                "metadata": {"name": "demo", "namespace": "default"},
                "status": {"trainerStatus": progress},
            },
            field_manager="trainer-progress",
            subresource="status",
        )
        await cluster.run_jobset("Completed", COMPLETED, succeeded=1)
        assert cluster.train_job["status"]["trainerStatus"] == progress
        assert cluster.train_job["status"]["state"] == "Complete"
        ours = [request.body for request in cluster.writes if request.field_manager == "trainer"]
        assert not any("trainerStatus" in body.get("status", {}) for body in ours)


async def test_pods_start_before_people_are_reported(cluster: Cluster) -> None:
    """Of many TrainJobs that come at once, the JobSets of all are created before the status of any is written."""
    names = [f"demo-{index}" for index in range(30)]
    async with cluster.managed():
        for name in names:
            cluster.client.add(train_job_object() | {"metadata": {"name": name, "namespace": "ns", "uid": f"u-{name}"}})
        await settle()
        await cluster.clock.advance(1)
    verbs = [(request.verb, request.resource) for request in cluster.writes if request.verb == "apply"]
    # Those that were being worked on when nobody waited any more.
    last = verbs.index(("apply", TRAIN_JOBS))
    assert verbs[:last].count(("apply", JOBSETS)) >= len(names) - 10
    assert verbs.count(("apply", JOBSETS)) == len(names)
    assert verbs.count(("apply", TRAIN_JOBS)) == len(names)


async def test_a_jobset_without_status_leads_to_no_reconcile(cluster: Cluster) -> None:
    """A created JobSet triggers no reconcile: submission takes one, and the first status of the JobSet another."""

    def reconciles() -> float:
        name = "controller_runtime_reconcile_time_seconds_count"
        return cluster.metrics.registry.get_sample_value(name, {"controller": "trainjob"}) or 0

    async with cluster.managed():
        await cluster.put(train_job_object())
        assert reconciles() == 1
        await cluster.run_jobset(active=1, ready=1)
        assert reconciles() == 2


async def test_what_has_ended_is_not_built_again(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JobSet that has ended is reported; what could be built now does not matter any more."""

    def fail(*_: object) -> None:
        raise AssertionError("built again")

    async with cluster.managed():
        await cluster.put(train_job_object())
        monkeypatch.setattr(Pipeline, "build", fail)
        await cluster.run_jobset("Completed", COMPLETED, succeeded=1)
        assert cluster.condition("Complete") == ("True", "AllJobsCompleted", "jobset completed")
        assert cluster.condition("Created") == CREATED


def controller_with_cache(cluster: Cluster, *objects: Object) -> TrainJobController:
    """A controller whose cache holds these objects, whatever the API server has."""
    manager = Manager(cluster.client, clock=cluster.clock)
    reader = CacheReader()
    controller = TrainJobController(manager, Pipeline(built_in_plugins(reader)), reader)
    resources = {"TrainJob": TRAIN_JOBS, "ClusterTrainingRuntime": CLUSTER_TRAINING_RUNTIMES}
    for obj in objects:
        manager.informer(resources[obj["kind"]]).put(CachedObject.of(obj))
    return controller


async def test_our_own_writes_are_read(cluster: Cluster) -> None:
    """While the cache does not show our last status yet, that status counts, so that no transition time is lost."""
    stale = cluster.client.add(train_job_object())
    controller = controller_with_cache(cluster, stale, runtime_object())
    for _ in range(2):
        await controller.reconcile(key_of(stale))
        await cluster.clock.advance(60)
    assert len([request for request in cluster.writes if request.subresource == "status"]) == 1


async def test_a_train_job_that_is_gone(cluster: Cluster) -> None:
    """A TrainJob that the cache still has, but the API server does not, is no error."""
    stale = train_job_object()
    await controller_with_cache(cluster, stale, runtime_object()).reconcile(key_of(stale))
    assert [request.subresource for request in cluster.writes] == ["", "", "status"]


async def test_status_and_metadata_do_not_wake_the_controller(cluster: Cluster) -> None:
    """Progress that is written every few seconds costs no reconcile; a new spec does."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        obj = cluster.train_job
        del obj["status"]["state"]
        await cluster.put(obj)
        assert "state" not in cluster.train_job["status"]
        await cluster.resync()
        assert cluster.train_job["status"]["state"] == "Created"


async def test_only_one_namespace(cluster: Cluster) -> None:
    """A manager that is confined to a namespace does not see others."""
    async with cluster.managed(namespace="default"):
        elsewhere = train_job_object("elsewhere")
        elsewhere["metadata"]["namespace"] = "other"
        await cluster.put(elsewhere)
        assert cluster.writes == []
        watches = cluster.client.requests_of("watch")
        assert {r.namespace for r in watches if r.resource.namespaced} == {"default"}
