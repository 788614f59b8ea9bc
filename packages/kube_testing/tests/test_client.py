"""The in-memory API server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.kube.conftest import Background
from tests.kube.objects import job, pod
from trainer.kube.client import (
    DeleteOptions,
    EventType,
    LogOptions,
    ObjectRequest,
    PatchType,
    Propagation,
    Verb,
    WatchOptions,
)
from trainer.kube.clock import timestamp
from trainer.kube.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    InternalError,
    InvalidError,
    NotFoundError,
    TransportError,
)
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import JOBS, PODS, SERVICE_ACCOUNTS, Resource
from trainer.kube.selection import Selection
from trainer_kube_testing import FakeClient, ManualClock, settle

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
GADGETS = Resource("example.com", "v1", "gadgets", "Gadget")
WIDGET: Object = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "ns"}}


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    suspended = job("a", labels={"x": "1"}) | {"spec": {"suspend": False}}
    return FakeClient(suspended, WIDGET, resources=[WIDGETS], clock=clock)


async def read(client: FakeClient, name: str = "a") -> Object:
    return await client.get(JOBS, name, "ns")


async def test_create_fills_in_what_a_server_does(client: FakeClient) -> None:
    """A created object has uid, version, generation and time, and no status."""
    created = await client.create(
        JOBS, {"metadata": {"generateName": "j-", "namespace": "ns"}, "status": {"active": 1}}
    )
    assert created["apiVersion"] == "batch/v1"
    assert created["kind"] == "Job"
    assert name_of(created).startswith("j-")
    assert created["metadata"]["generation"] == 1
    assert created["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert created["metadata"]["uid"]
    assert "status" not in created


async def test_dry_runs_store_nothing(client: FakeClient) -> None:
    """A dry run answers as a creation, and refuses what is there already."""
    request = ObjectRequest(Verb.CREATE, JOBS, "b", "ns", job("b"), dry_run=True)
    answer = await client.send(request)
    assert answer is not None
    assert name_of(answer) == "b"
    assert client.find(JOBS, "b", "ns") is None
    with pytest.raises(AlreadyExistsError):
        await client.send(ObjectRequest(Verb.CREATE, JOBS, "a", "ns", job("a"), dry_run=True))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        pytest.param(lambda c: c.create(JOBS, job("a")), AlreadyExistsError, id="create-existing"),
        pytest.param(lambda c: c.get(JOBS, "b", "ns"), NotFoundError, id="get-missing"),
        pytest.param(lambda c: c.update(JOBS, job("b")), NotFoundError, id="update-missing"),
        pytest.param(lambda c: c.patch(JOBS, "b", {}, "ns"), NotFoundError, id="patch-missing"),
        pytest.param(lambda c: c.delete(JOBS, "b", "ns"), NotFoundError, id="delete-missing"),
        pytest.param(
            lambda c: c.apply(JOBS, job("b"), field_manager="m", subresource="status"),
            NotFoundError,
            id="apply-status-of-missing",
        ),
        pytest.param(
            lambda c: c.patch(JOBS, "a", {"metadata": {"resourceVersion": "0"}}, "ns"), ConflictError, id="patch-stale"
        ),
        pytest.param(
            lambda c: c.delete(JOBS, "a", "ns", DeleteOptions(uid="no")), ConflictError, id="delete-other-uid"
        ),
        pytest.param(
            lambda c: c.delete(JOBS, "a", "ns", DeleteOptions(resource_version="no")),
            ConflictError,
            id="delete-other-version",
        ),
        pytest.param(lambda c: c.list(GADGETS), NotFoundError, id="not-served"),
        pytest.param(
            lambda c: c.patch(JOBS, "a", {}, "ns", patch_type=PatchType.JSON), BadRequestError, id="json-patch-no-list"
        ),
        pytest.param(lambda c: c.update(WIDGETS, WIDGET), InvalidError, id="update-without-version"),
        pytest.param(lambda c: c.update(JOBS, job("a", uid="another")), ConflictError, id="update-another-incarnation"),
        pytest.param(
            lambda c: c.apply(JOBS, job("b", uid="gone"), field_manager="m"), ConflictError, id="apply-to-one-gone"
        ),
        pytest.param(
            lambda c: c.create(JOBS, job("b", resourceVersion="1")), BadRequestError, id="create-with-version"
        ),
        pytest.param(lambda c: c.create(JOBS, {"metadata": {"namespace": "ns"}}), InvalidError, id="create-nameless"),
        pytest.param(lambda c: c.create(JOBS, pod("b")), BadRequestError, id="create-another-kind"),
        pytest.param(
            lambda c: c.apply(JOBS, {"metadata": {"name": "a", "namespace": "ns"}}, field_manager="m"),
            BadRequestError,
            id="apply-without-kind",
        ),
        pytest.param(
            lambda c: c.apply(JOBS, job("a", ownerReferences=[{"name": "x"}]), field_manager="m"),
            InternalError,
            id="apply-item-without-key",
        ),
        pytest.param(lambda c: c.get(JOBS, "a"), ValueError, id="no-namespace"),
        pytest.param(lambda c: c.get(JOBS, "a", "ns", subresource="log"), NotImplementedError, id="subresource"),
        pytest.param(
            lambda c: c.create(JOBS, job("a"), subresource="eviction"), NotImplementedError, id="create-subresource"
        ),
    ],
)
async def test_refusals(
    client: FakeClient, call: Callable[[FakeClient], Awaitable[Any]], error: type[Exception]
) -> None:
    """It refuses what a server refuses, and changes nothing then."""
    before = client.objects(JOBS)
    with pytest.raises(error):
        await call(client)
    assert client.objects(JOBS) == before


async def test_copies_are_independent(client: FakeClient) -> None:
    """Changing what was sent or received does not change what is stored."""
    received = await read(client)
    received["spec"]["suspend"] = True
    sent = pod("p", labels={"a": "b"})
    await client.create(PODS, sent)
    sent["metadata"]["labels"]["a"] = "c"
    assert (await read(client))["spec"] == {"suspend": False}
    assert client.objects(PODS)[0]["metadata"]["labels"] == {"a": "b"}


async def test_status_and_spec_are_written_separately(client: FakeClient) -> None:
    """The main endpoint keeps the status and counts changes of the spec; the status endpoint keeps all else."""
    job_a = await read(client)
    changed = await client.update(JOBS, job_a | {"spec": {"suspend": True}, "status": {"active": 1}})
    assert changed["metadata"]["generation"] == 2
    assert "status" not in changed
    written = await client.patch(
        JOBS, "a", {"spec": {"suspend": False}, "status": {"active": 1}}, "ns", subresource="status"
    )
    assert written["spec"] == {"suspend": True}
    assert written["status"] == {"active": 1}
    assert written["metadata"]["generation"] == 2
    removed = await client.patch(JOBS, "a", {"status": None}, "ns", subresource="status")
    assert "status" not in removed


async def test_write_without_a_change_is_none(client: FakeClient) -> None:
    """The resource version stays, and watches send nothing."""
    await client.apply(JOBS, job("a") | {"spec": {"suspend": False}}, field_manager="m")
    before = await read(client)
    await client.update(JOBS, before)
    await client.patch(JOBS, "a", {"spec": {"suspend": False}}, "ns")
    await client.apply(JOBS, job("a") | {"spec": {"suspend": False}}, field_manager="m")
    assert await read(client) == before


async def test_finalizers_delay_deletion(client: FakeClient) -> None:
    """A finalized object is marked, keeps its mark, takes no new finalizers, and goes with its last one."""
    await client.patch(JOBS, "a", {"metadata": {"finalizers": ["x/y"]}}, "ns")
    marked = await client.delete(JOBS, "a", "ns")
    assert marked is not None
    assert marked["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert marked["metadata"]["generation"] == 2
    assert await client.delete(JOBS, "a", "ns") == marked == await read(client)
    with pytest.raises(InvalidError, match="no new finalizers can be added"):
        await client.patch(JOBS, "a", {"metadata": {"finalizers": ["x/y", "z"]}}, "ns")
    await client.patch(JOBS, "a", {"metadata": {"finalizers": None}}, "ns")
    assert client.objects(JOBS) == []


@pytest.mark.parametrize(
    ("propagation", "finalizers"),
    [
        pytest.param(None, ["x/y", "orphan"], id="that-of-the-object"),
        pytest.param(Propagation.BACKGROUND, ["x/y"], id="background"),
        pytest.param(Propagation.FOREGROUND, ["x/y", "foregroundDeletion"], id="foreground"),
    ],
)
async def test_propagation_becomes_a_finalizer(
    client: FakeClient, propagation: Propagation | None, finalizers: list[str]
) -> None:
    """The policy of a deletion is left to a garbage collector as a finalizer."""
    client.add(job("b", finalizers=["x/y", "orphan"]))
    deleted = await client.delete(JOBS, "b", "ns", DeleteOptions(propagation=propagation))
    assert deleted is not None
    assert deleted["metadata"]["finalizers"] == finalizers


async def test_removed_objects_are_not_answered(client: FakeClient) -> None:
    """What is gone at once is answered with a Status, which a client gives as None."""
    assert await client.delete(JOBS, "a", "ns") is None


async def test_delete_collection_respects_the_selection(client: FakeClient) -> None:
    """Only selected objects are deleted."""
    client.add(job("b"))
    client.add(job("c", "other", labels={"x": "1"}))
    await client.delete_collection(JOBS, Selection("ns", "x=1"))
    assert [name_of(obj) for obj in client.objects(JOBS)] == ["b", "c"]


APPLIED = job("z", labels={"app": "x"}) | {
    "spec": {"suspend": True, "template": {"spec": {"containers": [{"name": "c"}]}}}
}


async def test_apply_creates_and_takes_away_what_is_no_longer_wanted(client: FakeClient) -> None:
    """Fields left out of the next apply of a manager go, except those of others."""
    created = await client.apply(JOBS, APPLIED, field_manager="m")
    assert created["spec"] == APPLIED["spec"]
    await client.patch(JOBS, "z", {"metadata": {"annotations": {"other": "kept"}}}, "ns")
    await client.apply(JOBS, job("z", labels={"app": "x"}), field_manager="n")
    changed = await client.apply(JOBS, job("z") | {"spec": {"suspend": False}}, field_manager="m")
    assert changed["spec"] == {"suspend": False}
    assert changed["metadata"]["labels"] == {"app": "x"}
    assert changed["metadata"]["annotations"] == {"other": "kept"}
    gone = await client.apply(JOBS, job("z"), field_manager="n")
    assert "labels" not in gone["metadata"]


@pytest.mark.parametrize(
    ("selection", "version", "expected"),
    [
        pytest.param(Selection(), "2", [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")], id="from-a-version"),
        pytest.param(Selection(), "", [("ADDED", "a")], id="from-now"),
        pytest.param(Selection(label_selector="x=1"), "2", [("DELETED", "a")], id="leaves-the-selection"),
    ],
)
async def test_watch_replays_the_history(
    client: FakeClient, background: Background, selection: Selection, version: str, expected: list[tuple[str, str]]
) -> None:
    """A watch sees the changes after its version as they look through its selection."""
    await client.create(JOBS, job("b"))
    await client.patch(JOBS, "a", {"metadata": {"labels": {"x": "2"}}}, "ns")
    await client.delete(JOBS, "b", "ns")
    received: list[tuple[str, str]] = []

    async def watch() -> None:
        async with client.watch(JOBS, selection, WatchOptions(version)) as events:
            async for event in events:
                received.append((event.type, name_of(event.object)))  # noqa: PERF401 - it has no end

    background(watch())
    await settle()
    assert received == expected


async def test_requests_are_recorded(client: FakeClient, clock: ManualClock) -> None:
    """Every request is kept with its body as it was sent, and when it was."""
    await client.apply(JOBS, job("b"), field_manager="m")
    await clock.advance(5)
    await client.delete(JOBS, "b", "ns")
    assert [request.time for request in client.requests] == [0.0, 5.0]
    assert [(request.verb, request.resource, request.namespace, request.name) for request in client.requests] == [
        ("apply", JOBS, "ns", "b"),
        ("delete", JOBS, "ns", "b"),
    ]
    [applied] = client.requests_of("apply", "patch")
    assert applied.body == job("b")
    assert applied.field_manager == "m"


async def test_logs_are_what_the_test_set(client: FakeClient) -> None:
    """A container's own log comes first, then that of the pod."""
    client.add(pod("p"))
    client.log("p", "ns").write(b"all")
    client.log("p", "ns", "c").write(b"mine")
    texts = []
    for container in ("c", "d"):
        async with client.logs("p", "ns", LogOptions(container)) as chunks:
            texts.append(b"".join([chunk async for chunk in chunks]))
    assert texts == [b"mine", b"all"]
    with pytest.raises(NotFoundError):
        async with client.logs("q", "ns"):
            pass


def test_unknown_objects_are_refused() -> None:
    """An object without a known resource could never be found again."""
    with pytest.raises(ValueError, match=r"no resource for example\.com/v1 Widget: pass it in `resources`"):
        FakeClient({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    FakeClient(WIDGET, resources=[WIDGETS])


async def test_objects_appear_and_vanish_behind_the_back_of_the_client(client: FakeClient) -> None:
    """What others do is no request of ours."""
    added = client.add(pod("p", finalizers=["x/y"]))
    assert client.find(PODS, "p", "ns") == added
    client.remove(PODS, "p", "ns")
    assert client.find(PODS, "p", "ns") is None
    assert client.resource_version == "4"
    assert client.requests == []


async def test_resource_that_is_no_longer_served(client: FakeClient) -> None:
    """Its objects are deleted, its watches end cleanly, and it may be installed again, empty."""
    client.serve(GADGETS)
    gadget = {"apiVersion": GADGETS.api_version, "kind": GADGETS.kind, "metadata": {"name": "g", "namespace": "ns"}}
    client.add(gadget)
    async with client.watch(GADGETS, options=WatchOptions(client.resource_version)) as events:
        client.withdraw(GADGETS)
        assert [event.type async for event in events] == [EventType.DELETED]
    with pytest.raises(NotFoundError, match="could not find the requested resource"):
        await client.list(GADGETS)
    with pytest.raises(ValueError, match="no resource for"):
        client.add(gadget)
    client.serve(GADGETS)
    assert (await client.list(GADGETS)).items == []


async def test_a_version_that_is_not_served(client: FakeClient) -> None:
    """It is as unknown as a resource that does not exist, although another version of it is served."""
    with pytest.raises(NotFoundError, match="could not find the requested resource"):
        await client.list(msgspec.structs.replace(WIDGETS, version="v9"))


async def test_merge_patch_may_drop_the_version(client: FakeClient) -> None:
    """A patch that removes the resource version asks for no check, also where an update must name one."""
    patched = await client.patch(WIDGETS, "w", {"metadata": {"resourceVersion": None}, "spec": {"a": 1}}, "ns")
    assert patched["spec"] == {"a": 1}


async def test_token_request_is_answered(client: FakeClient, clock: ManualClock) -> None:
    """A TokenRequest for an account that exists gets a token that tells whose it is, and when it ends."""
    request = {"metadata": {"name": "bot", "namespace": "ns"}, "spec": {"expirationSeconds": 600}}
    with pytest.raises(NotFoundError):
        await client.create(SERVICE_ACCOUNTS, request, subresource="token")
    await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "bot", "namespace": "ns"}})
    answer = await client.create(SERVICE_ACCOUNTS, request, subresource="token")
    expiry = timestamp(clock.now() + timedelta(seconds=600))
    assert answer["status"] == {"token": "token-of-ns-bot", "expirationTimestamp": expiry}


async def test_binding_names_the_node(client: FakeClient) -> None:
    """Posting a Binding sets the node of the pod."""
    client.add(pod("p"))
    binding = {"metadata": {"name": "p", "namespace": "ns"}, "target": {"kind": "Node", "name": "n"}}
    await client.create(PODS, binding, subresource="binding")
    assert client.objects(PODS)[0]["spec"] == {"nodeName": "n"}


async def test_failed_apply_leaves_the_owners(client: FakeClient) -> None:
    """An apply that is refused does not change who owns what."""
    await client.apply(JOBS, APPLIED, field_manager="m")
    stale = job("z", labels={"app": "x"}, resourceVersion="1") | {"spec": {"parallelism": 2}}
    with pytest.raises(ConflictError):
        await client.apply(JOBS, stale, field_manager="m")
    applied = await client.apply(JOBS, job("z") | {"spec": {"suspend": True}}, field_manager="m")
    assert applied["spec"] == {"suspend": True}


async def test_custom_resources_have_no_strategic_merge(client: FakeClient) -> None:
    """As on a real server, that patch needs a built-in type."""
    with pytest.raises(ApiError) as failed:
        await client.patch(WIDGETS, "w", {}, "ns", patch_type=PatchType.STRATEGIC)
    assert failed.value.code == 415


async def test_failures_name_the_object(client: FakeClient) -> None:
    """The details of a Status say what it is about."""
    with pytest.raises(ApiError) as failed:
        await client.get(JOBS, "b", "ns")
    assert failed.value.status["details"] == {"name": "b", "group": "batch", "kind": "jobs"}


async def test_peers_share_the_server_and_nothing_else(client: FakeClient) -> None:
    """Two clients stand for two processes: one may be cut off while the other writes."""
    other = client.peer()
    client.faults.refuse_connections()
    with pytest.raises(TransportError):
        await read(client)
    await other.create(PODS, pod("p"))
    assert [obj["metadata"]["name"] for obj in client.objects(PODS)] == ["p"]
    assert [request.verb for request in client.requests] == ["get"]
    assert [request.verb for request in other.requests] == ["create"]
