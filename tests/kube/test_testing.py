"""The in-memory API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.objects import job, pod
from trainer.kube.client import Client, DeleteOptions, LogOptions, PatchType, Selection, WatchOptions
from trainer.kube.errors import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    TransportError,
)
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import CONFIG_MAPS, JOBS, PODS, Resource
from trainer.kube.testing import FakeClient, ManualClock, settle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.kube.conftest import Background

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(job("a", labels={"x": "1"}) | {"spec": {"suspend": False}}, clock=clock)


async def read(client: FakeClient, name: str = "a") -> Object:
    return await client.get(JOBS, name, "ns")


def test_it_is_a_client(client: FakeClient) -> None:
    """It can stand in wherever the protocol is asked for."""
    protocol: Client = client
    assert protocol is client


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
        pytest.param(lambda c: c.update(JOBS, job("a", resourceVersion="0")), ConflictError, id="update-stale"),
        pytest.param(
            lambda c: c.patch(JOBS, "a", {"metadata": {"resourceVersion": "0"}}, "ns"), ConflictError, id="patch-stale"
        ),
        pytest.param(
            lambda c: c.delete(JOBS, "a", "ns", DeleteOptions(uid="no")), ConflictError, id="delete-other-uid"
        ),
        pytest.param(lambda c: c.list(WIDGETS), NotFoundError, id="not-served"),
        pytest.param(
            lambda c: c.patch(JOBS, "a", [], "ns", patch_type=PatchType.JSON), NotImplementedError, id="json-patch"
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
    """The resource version stays, and watches are told nothing."""
    before = await read(client)
    await client.update(JOBS, before)
    await client.patch(JOBS, "a", {"spec": {"suspend": False}}, "ns")
    await client.apply(JOBS, job("a") | {"spec": {"suspend": False}}, field_manager="m")
    assert await read(client) == before


async def test_finalizers_delay_deletion(client: FakeClient) -> None:
    """A finalized object is marked, and goes with its last finalizer."""
    await client.patch(JOBS, "a", {"metadata": {"finalizers": ["x/y"]}}, "ns")
    await client.delete(JOBS, "a", "ns")
    await client.delete(JOBS, "a", "ns")
    assert (await read(client))["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    await client.patch(JOBS, "a", {"metadata": {"finalizers": None}}, "ns")
    assert client.objects(JOBS) == []


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


async def test_apply_conflicts_over_fields_of_others(client: FakeClient) -> None:
    """Another manager's field with another value is a conflict, which force decides."""
    await client.apply(JOBS, APPLIED, field_manager="m")
    theirs = job("z") | {"spec": {"suspend": False}}
    with pytest.raises(ConflictError, match=r"1 conflict\(s\): \.spec\.suspend \(owned by m\)"):
        await client.apply(JOBS, theirs, field_manager="n")
    assert (await read(client, "z"))["spec"]["suspend"] is True
    await client.apply(JOBS, theirs, field_manager="n", force=True)
    assert (await read(client, "z"))["spec"]["suspend"] is False
    back = await client.apply(JOBS, job("z"), field_manager="m")
    assert back["spec"] == {"suspend": False}


async def test_apply_merges_conditions_by_type(client: FakeClient) -> None:
    """Two managers can keep their conditions side by side."""
    mine = {"type": "Created", "status": "True"}
    theirs = {"type": "Progressing", "status": "False"}
    for manager, condition in (("m", mine), ("n", theirs), ("m", mine | {"status": "False"})):
        await client.apply(
            JOBS, job("a") | {"status": {"conditions": [condition]}}, field_manager=manager, subresource="status"
        )
    assert (await read(client))["status"]["conditions"] == [mine | {"status": "False"}, theirs]
    await client.apply(JOBS, job("a"), field_manager="m", subresource="status")
    assert (await read(client))["status"]["conditions"] == [theirs]


async def test_apply_of_an_empty_map_keeps_what_others_put_there(client: FakeClient) -> None:
    """`annotations: {}` asks for a map, not for an empty one."""
    await client.patch(JOBS, "a", {"metadata": {"annotations": {"x": "y"}}}, "ns")
    applied = await client.apply(JOBS, job("a", annotations={}), field_manager="m")
    assert applied["metadata"]["annotations"] == {"x": "y"}


@pytest.mark.parametrize(
    ("selection", "version", "expected"),
    [
        pytest.param(Selection(), "1", [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")], id="from-a-version"),
        pytest.param(Selection(), "2", [("MODIFIED", "a"), ("DELETED", "b")], id="from-a-later-version"),
        pytest.param(Selection(), "", [("ADDED", "a")], id="from-now"),
        pytest.param(Selection(label_selector="x=2"), "1", [("ADDED", "a")], id="enters-the-selection"),
        pytest.param(Selection(label_selector="x=1"), "1", [("DELETED", "a")], id="leaves-the-selection"),
        pytest.param(Selection("other"), "1", [], id="other-namespace"),
        pytest.param(
            Selection(field_selector="metadata.name=b"), "1", [("ADDED", "b"), ("DELETED", "b")], id="field-selector"
        ),
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


async def test_watch_from_a_forgotten_version_is_gone(client: FakeClient) -> None:
    """After a compaction only newer versions are served."""
    await client.create(JOBS, job("b"))
    client.compact()
    async with client.watch(JOBS, options=WatchOptions("1")) as events:
        with pytest.raises(GoneError):
            await anext(events)


async def test_end_watches_can_break_them(client: FakeClient) -> None:
    """A test decides how a watch ends."""
    async with client.watch(JOBS, options=WatchOptions("")) as events:
        await anext(events)
        client.end_watches(TransportError("reset"))
        with pytest.raises(TransportError):
            await anext(events)


async def test_requests_are_recorded(client: FakeClient) -> None:
    """Every request is kept with its body as it was sent."""
    await client.apply(JOBS, job("b"), field_manager="m")
    await client.delete(JOBS, "b", "ns")
    assert [(request.verb, request.resource, request.namespace, request.name) for request in client.requests] == [
        ("apply", JOBS, "ns", "b"),
        ("delete", JOBS, "ns", "b"),
    ]
    [applied] = client.requests_of("apply", "patch")
    assert applied.body == job("b")
    assert applied.field_manager == "m"


async def test_next_request_can_fail(client: FakeClient) -> None:
    """A scripted failure hits the first request that it is meant for, once."""
    client.fail_next(ForbiddenError(403, "no"), verb="create", resource=PODS)
    await client.create(CONFIG_MAPS, {"metadata": {"name": "c", "namespace": "ns"}})
    with pytest.raises(ForbiddenError):
        await client.create(PODS, pod("p"))
    await client.create(PODS, pod("p"))


async def test_logs_are_what_the_test_set(client: FakeClient) -> None:
    """A container's own log comes first, then that of the pod."""
    client.add(pod("p"))
    client.set_log("p", "ns", b"all")
    client.set_log("p", "ns", b"mine", container="c")
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
    FakeClient({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}, resources=[WIDGETS])
