"""A client for a cluster that serves v1alpha1."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, ClusterTrainingRuntime
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.kube.client import EventType, ListOptions, Verb, WatchOptions
from trainer.kube.errors import ConflictError
from trainer.kube.field_errors import required
from trainer.kube.objects import Object, annotations_of, controller_reference, find_condition, resource_version_of
from trainer.kube.resource import PODS
from trainer.v1alpha1.client import SERVED, V1Alpha1Client
from trainer.v1alpha1.status import EXTENSION
from trainer_kube_testing import statuses
from trainer_kube_testing.client import FakeClient

TIME = "2026-01-01T00:00:00Z"
V1 = SERVED[TRAIN_JOBS]
STORED: Object = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "demo", "namespace": "team"},
    "spec": {"runtimeRef": {"name": "r"}, "initializer": {"dataset": {"storageUri": "hf://d"}}},
}
RUNTIME: Object = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "r"},
    "spec": {"mlPolicy": {"mpi": {"numProcPerNode": 1, "sshAuthMountPath": "/x"}}, "template": {"spec": {}}},
}
POD: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team"}}


def condition(type_: str) -> Object:
    """A condition that is true."""
    return {"type": type_, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": TIME}


@pytest.fixture
def server() -> FakeClient:
    """A cluster with a TrainJob and a runtime of v1alpha1."""
    return FakeClient(STORED, RUNTIME, POD, resources=SERVED.values())


def status_of(server: FakeClient, **status: Any) -> Object:
    """A status to apply."""
    stored = server.find(V1, "demo", "team")
    assert stored is not None
    metadata = {"name": "demo", "namespace": "team", "uid": stored["metadata"]["uid"]}
    return {"apiVersion": TRAIN_JOBS.api_version, "kind": "TrainJob", "metadata": metadata, "status": status}


async def test_reads(server: FakeClient) -> None:
    """Every way to read answers in the shape of the model; owner references made of it name v1alpha1."""
    client = V1Alpha1Client(server, is_extended=True)

    got = await client.get(TRAIN_JOBS, "demo", "team")
    listed = (await client.list(TRAIN_JOBS)).items
    (paged,) = (await client.list_page(TRAIN_JOBS, options=ListOptions(limit=1))).items
    async with client.watch(TRAIN_JOBS, options=WatchOptions(resource_version="0")) as events:
        event = await anext(events)

    assert got["spec"]["datasetConfig"] == {"storageUri": "hf://d"}
    assert event.type is EventType.ADDED
    assert listed == [got] == [paged] == [event.object]
    assert TrainJob.from_object(got).api_version == "trainer.kubeflow.org/v1alpha1"
    assert controller_reference(got)["apiVersion"] == "trainer.kubeflow.org/v1alpha1"
    runtime = ClusterTrainingRuntime.from_object(await client.get(CLUSTER_TRAINING_RUNTIMES, "r"))
    assert runtime.spec.ml_policy is not None
    assert runtime.spec.ml_policy.mpi is not None
    assert runtime.spec.ml_policy.mpi.ssh_auth_mount_path == "/x"


async def test_other_resources(server: FakeClient) -> None:
    """All else passes unchanged, logs as well."""
    client = V1Alpha1Client(server, is_extended=True)
    server.log("p", "team").write(b"line\n")

    assert await client.get(PODS, "p", "team") == server.find(PODS, "p", "team")
    assert (await client.list(PODS)).items == server.objects(PODS)
    assert len((await client.list_page(PODS)).items) == 1
    async with client.watch(PODS, options=WatchOptions(resource_version="0")) as events:
        assert (await anext(events)).object["kind"] == "Pod"
    async with client.logs("p", "team") as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b"line\n"


@pytest.mark.parametrize("is_extended", [True, False], ids=["our CRDs", "upstream's CRDs"])
async def test_status(server: FakeClient, is_extended: bool) -> None:
    """Clients see the conditions of v1alpha1; what we read again is the whole status."""
    client = V1Alpha1Client(server, is_extended=is_extended)
    status = {"conditions": [condition("Created"), condition("Suspended")], "state": "Suspended"}
    applied = status_of(server, **status)

    answer = await client.apply(TRAIN_JOBS, applied, field_manager="trainer", force=True, subresource="status")

    stored = server.find(V1, "demo", "team") or {}
    assert [each["type"] for each in stored["status"]["conditions"]] == ["Suspended"]
    assert ("state" in stored["status"]) is is_extended
    assert bool(annotations_of(stored)) is not is_extended
    for seen in (answer, await client.get(TRAIN_JOBS, "demo", "team")):
        assert seen["status"]["state"] == "Suspended"
        assert find_condition(seen, "Created") == condition("Created")


@pytest.mark.parametrize("is_extended", [True, False], ids=["our CRDs", "upstream's CRDs"])
@pytest.mark.parametrize("is_applied", [True, False], ids=["suspended here as well", "resumed at once"])
@pytest.mark.parametrize("theirs", ["True", "False"], ids=["suspended there", "resumed there"])
async def test_resumed_after_a_take_over(server: FakeClient, is_extended: bool, is_applied: bool, theirs: str) -> None:
    """The condition that belongs to the Go manager as well goes too: its column STATE has the last type."""
    client = V1Alpha1Client(server, is_extended=is_extended)
    suspended, resumed = condition("Suspended"), condition("Suspended") | {"status": "False"}
    released = status_of(server, conditions=[suspended | {"status": theirs}]) | {"apiVersion": V1.api_version}
    await server.apply(V1, released, field_manager="released", force=True, subresource="status")
    given = [[condition("Created"), resumed], [condition("Created"), resumed | {"message": "later"}]]
    if is_applied:
        given.insert(0, [condition("Created"), suspended])

    for conditions in given:
        server.requests.clear()
        ours = status_of(server, conditions=conditions)
        answer = await client.apply(TRAIN_JOBS, ours, field_manager="trainer", force=True, subresource="status")
        seen = await client.get(TRAIN_JOBS, "demo", "team")
        assert find_condition(seen, "Suspended") == find_condition(answer, "Suspended") == conditions[1]
    assert not (server.find(V1, "demo", "team") or {})["status"].get("conditions")
    assert [request.verb for request in server.requests if request.verb is Verb.PATCH] == [], "once is enough"


@pytest.mark.parametrize("is_extended", [True, False], ids=["our CRDs", "upstream's CRDs"])
async def test_resumed_where_a_part_of_the_condition_is_left(server: FakeClient, is_extended: bool) -> None:
    """Of a condition that both managers have applied the type alone is left, which the API server refuses."""
    client = V1Alpha1Client(server, is_extended=is_extended)
    suspended, resumed = condition("Suspended"), condition("Suspended") | {"status": "False"}
    released = status_of(server, conditions=[suspended]) | {"apiVersion": V1.api_version}
    await server.apply(V1, released, field_manager="released", force=True, subresource="status")
    invalid = statuses.invalid("TrainJob", TRAIN_JOBS.group, "demo", [required("status.conditions[0].status", "m")])
    server.faults.fail(invalid, verb="apply", subresource="status")

    ours = status_of(server, conditions=[condition("Created"), resumed])
    answer = await client.apply(TRAIN_JOBS, ours, field_manager="trainer", force=True, subresource="status")

    assert find_condition(answer, "Suspended") == resumed
    assert not (server.find(V1, "demo", "team") or {})["status"].get("conditions")


@pytest.mark.parametrize("is_extended", [True, False], ids=["our CRDs", "upstream's CRDs"])
async def test_a_condition_that_changes_meanwhile(server: FakeClient, is_extended: bool) -> None:
    """It is left for the next write."""
    client = V1Alpha1Client(server, is_extended=is_extended)
    suspended, resumed = condition("Suspended"), condition("Suspended") | {"status": "False"}
    released = status_of(server, conditions=[suspended]) | {"apiVersion": V1.api_version}
    await server.apply(V1, released, field_manager="released", force=True, subresource="status")
    server.faults.fail(statuses.invalid("TrainJob", TRAIN_JOBS.group, "demo", []), verb="patch", subresource="status")

    ours = status_of(server, conditions=[condition("Created"), resumed])
    for left in (suspended, None):
        await client.apply(TRAIN_JOBS, ours, field_manager="trainer", force=True, subresource="status")
        assert find_condition(server.find(V1, "demo", "team") or {}, "Suspended") == left


@pytest.mark.parametrize("is_extended", [True, False], ids=["our CRDs", "upstream's CRDs"])
async def test_resumed(server: FakeClient, is_extended: bool) -> None:
    """Clients see no condition while a resumed TrainJob runs: the SDK takes any for "Created"."""
    client = V1Alpha1Client(server, is_extended=is_extended)
    suspended, resumed = condition("Suspended"), condition("Suspended") | {"status": "False"}
    shown = []
    for conditions in ([suspended], [resumed], [resumed, condition("Complete")]):
        ours = status_of(server, conditions=conditions)
        answer = await client.apply(TRAIN_JOBS, ours, field_manager="trainer", force=True, subresource="status")
        stored = server.find(V1, "demo", "team") or {}
        shown.append((stored.get("status") or {}).get("conditions"))
        assert answer["status"]["conditions"] == conditions

    assert shown == [[suspended], None, [resumed, condition("Complete")]]


async def test_status_of_an_unchanged_trainjob(server: FakeClient) -> None:
    """The version is a precondition of the status, which changes it before the annotation is written."""
    client = V1Alpha1Client(server, is_extended=False)
    applied = status_of(server, state="Running")
    applied["metadata"]["resourceVersion"] = resource_version_of(await client.get(TRAIN_JOBS, "demo", "team"))

    await client.apply(TRAIN_JOBS, applied, field_manager="trainer", force=True, subresource="status")

    assert (await client.get(TRAIN_JOBS, "demo", "team"))["status"]["state"] == "Running"
    with pytest.raises(ConflictError):
        await client.apply(TRAIN_JOBS, applied, field_manager="trainer", force=True, subresource="status")


async def test_two_field_managers_on_the_crds_of_upstream(server: FakeClient) -> None:
    """Each has an annotation of its own, which is written when its content changes."""
    client = V1Alpha1Client(server, is_extended=False)
    progress = status_of(server, trainerStatus={"progressPercentage": 5, "currentStep": 1, "lastUpdatedTime": TIME})
    jobs = status_of(server, state="Running")

    for _ in range(2):
        await client.apply(TRAIN_JOBS, jobs, field_manager="trainer", force=True, subresource="status")
        await client.apply(TRAIN_JOBS, progress, field_manager="trainer-progress", force=True, subresource="status")

    assert [request.subresource or "" for request in server.requests] == [
        "status",
        "",
        "status",
        "",
        "status",
        "status",
    ]
    stored = server.find(V1, "demo", "team") or {}
    assert annotations_of(stored).keys() == {f"{EXTENSION}trainer", f"{EXTENSION}trainer-progress"}
    seen = await client.get(TRAIN_JOBS, "demo", "team")
    assert (seen["status"]["state"], seen["status"]["trainerStatus"]["currentStep"]) == ("Running", 1)


async def test_annotations_of_before_the_crds_were_replaced(server: FakeClient) -> None:
    """They do not count, so that the status is written anew, where all clients see it."""
    applied = status_of(server, state="Running")
    before = V1Alpha1Client(server, is_extended=False)
    await before.apply(TRAIN_JOBS, applied, field_manager="trainer", force=True, subresource="status")
    client = V1Alpha1Client(server, is_extended=True)

    (listed,) = (await client.list(TRAIN_JOBS)).items
    async with client.watch(TRAIN_JOBS, options=WatchOptions(resource_version="0")) as events:
        watched = (await anext(events)).object
    assert "status" not in listed.keys() | watched.keys() | (await client.get(TRAIN_JOBS, "demo", "team")).keys()


async def test_status_of_nothing_that_the_crds_of_upstream_keep(server: FakeClient) -> None:
    """An empty status is left out, since the CRD demands at least one property."""
    client = V1Alpha1Client(server, is_extended=False)

    await client.apply(
        TRAIN_JOBS, status_of(server, state="Created"), field_manager="trainer", force=True, subresource="status"
    )

    assert "status" not in (server.find(V1, "demo", "team") or {})
    assert (await client.get(TRAIN_JOBS, "demo", "team"))["status"] == {"state": "Created"}


async def test_changes_that_both_versions_have(server: FakeClient) -> None:
    """Suspend is patched as it is, and a deletion needs no translation."""
    client = V1Alpha1Client(server, is_extended=True)

    changed = await client.patch(TRAIN_JOBS, "demo", {"spec": {"suspend": True}}, "team")
    await client.delete(TRAIN_JOBS, "demo", "team")

    assert (changed["spec"]["suspend"], "datasetConfig" in changed["spec"]) == (True, True)
    assert server.find(V1, "demo", "team") is None


async def test_bookmarks(server: FakeClient) -> None:
    """Bookmarks of a watch pass."""
    client = V1Alpha1Client(server, is_extended=True)
    options = WatchOptions(resource_version="", send_initial_events=True)
    with anyio.fail_after(5):
        async with client.watch(TRAIN_JOBS, options=options) as events:
            seen = [(await anext(events)).type for _ in range(2)]
    assert seen == [EventType.ADDED, EventType.BOOKMARK]
