"""The client of a manager: the elector before each write, the cache after it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.kube.objects import pod
from trainer.kube.cache.cache import Cache
from trainer.kube.client import DEFAULT_LOG, DeleteOptions
from trainer.kube.election.leader_election import LeaderElector
from trainer.kube.errors import ApiError, ConflictError, LeadershipLostError, NotFoundError, error_from_status
from trainer.kube.manager.managed_client import ManagedClient
from trainer.kube.objects import Object, ObjectKey, name_of, uid_of
from trainer.kube.resource import PODS, Resource
from trainer.kube.selection import Selection
from trainer_kube_testing import FakeClient, ManualClock


class RecordingElector(LeaderElector):
    """Lets writes pass while it leads."""

    def __init__(self) -> None:
        self.leads = True
        self.passed = 0

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        if not self.leads:
            raise LeadershipLostError("the lease is not held")
        yield
        self.passed += 1


class RecordingCache(Cache):
    """Notes what it is to show."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def wrote(self, resource: Resource, obj: Object) -> None:
        self.calls.append(("wrote", f"{resource.plural} {name_of(obj)} {obj['metadata']['resourceVersion']}"))

    def known_uid(self, resource: Resource, key: ObjectKey) -> str:
        return f"uid of {key.name}"

    def deleted(self, resource: Resource, key: ObjectKey, uid: str, answer: Object | None) -> None:
        self.calls.append(("deleted", f"{resource.plural} {key} {uid}"))


@pytest.fixture
def server(clock: ManualClock) -> FakeClient:
    return FakeClient(pod("a"), clock=clock)


@pytest.fixture
def elector() -> RecordingElector:
    return RecordingElector()


@pytest.fixture
def cache() -> RecordingCache:
    return RecordingCache()


@pytest.fixture
def client(server: FakeClient, elector: RecordingElector, cache: RecordingCache) -> ManagedClient:
    return ManagedClient(server, cache, elector)


WRITES: list[Any] = [
    pytest.param(lambda client: client.create(PODS, pod("b")), [("wrote", "pods b 2")], id="create"),
    pytest.param(lambda client: client.update(PODS, pod("a", labels={"x": "y"})), [("wrote", "pods a 2")], id="update"),
    pytest.param(
        lambda client: client.patch(PODS, "a", {"metadata": {"labels": {"x": "y"}}}, "ns"),
        [("wrote", "pods a 2")],
        id="patch",
    ),
    pytest.param(lambda client: client.apply(PODS, pod("b"), field_manager="me"), [("wrote", "pods b 2")], id="apply"),
    pytest.param(
        lambda client: client.patch(PODS, "a", {"status": {"phase": "Failed"}}, "ns", subresource="status"),
        [("wrote", "pods a 2")],
        id="status",
    ),
    pytest.param(lambda client: client.delete(PODS, "a", "ns"), [("deleted", "pods ns/a uid of a")], id="delete"),
    pytest.param(lambda client: client.delete_collection(PODS, Selection("ns")), [], id="delete-collection"),
]


@pytest.mark.parametrize(("write", "calls"), WRITES)
async def test_writes_are_made_under_the_lease_and_shown(
    client: ManagedClient,
    elector: RecordingElector,
    cache: RecordingCache,
    write: Callable[[ManagedClient], Awaitable[object]],
    calls: list[tuple[str, str]],
) -> None:
    """Each kind of write is made once, under the lease, and its answer is shown."""
    await write(client)
    assert elector.passed == 1
    assert cache.calls == calls


@pytest.mark.parametrize(("write", "calls"), WRITES)
async def test_nothing_is_sent_without_the_lease(
    client: ManagedClient,
    server: FakeClient,
    elector: RecordingElector,
    cache: RecordingCache,
    write: Callable[[ManagedClient], Awaitable[object]],
    calls: list[tuple[str, str]],
) -> None:
    """No write reaches the server."""
    elector.leads = False
    with pytest.raises(LeadershipLostError):
        await write(client)
    assert server.requests == []
    assert cache.calls == []


async def test_reads_need_no_lease(client: ManagedClient, server: FakeClient, elector: RecordingElector) -> None:
    """Who does not lead may look."""
    elector.leads = False
    assert name_of(await client.get(PODS, "a", "ns")) == "a"
    assert len((await client.list(PODS)).items) == len((await client.list_page(PODS)).items) == 1
    async with client.watch(PODS), client.logs("a", "ns", DEFAULT_LOG):
        pass


async def test_uid_of_the_precondition_counts(client: ManagedClient, cache: RecordingCache) -> None:
    """What was deleted is what the caller named, whatever the cache shows under the name."""
    uid = uid_of(await client.get(PODS, "a", "ns"))
    await client.delete(PODS, "a", "ns", DeleteOptions(uid=uid))
    assert cache.calls == [("deleted", f"pods ns/a {uid}")]


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda client: client.update(PODS, pod("a")), id="update"),
        pytest.param(lambda client: client.patch(PODS, "a", {}, "ns"), id="patch"),
        pytest.param(lambda client: client.patch(PODS, "a", {}, "ns", subresource="status"), id="status"),
        pytest.param(lambda client: client.delete(PODS, "a", "ns"), id="delete"),
    ],
)
async def test_objects_that_the_server_does_not_find(
    client: ManagedClient,
    server: FakeClient,
    cache: RecordingCache,
    write: Callable[[ManagedClient], Awaitable[object]],
) -> None:
    """A write to what is gone tells the cache so, and fails all the same."""
    status = {"reason": "NotFound", "details": {"name": "a", "kind": "pods"}}
    server.faults.fail(error_from_status(404, status))
    with pytest.raises(NotFoundError):
        await write(client)
    assert cache.calls == [("deleted", "pods ns/a uid of a")]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(NotFoundError(404, "the server could not find the requested resource"), id="not-served"),
        pytest.param(
            error_from_status(404, {"reason": "NotFound", "details": {"name": "ns", "kind": "namespaces"}}),
            id="no-such-namespace",
        ),
        pytest.param(ConflictError(409, "changed"), id="conflict"),
    ],
)
async def test_failed_writes_are_not_shown(
    client: ManagedClient, server: FakeClient, cache: RecordingCache, error: ApiError
) -> None:
    """Only what the server has accepted, or says of this very object, shows in the cache."""
    server.faults.fail(error)
    with pytest.raises(type(error)):
        await client.patch(PODS, "a", {}, "ns")
    server.faults.fail(error)
    with pytest.raises(type(error)):
        await client.delete(PODS, "a", "ns")
    assert cache.calls == []
