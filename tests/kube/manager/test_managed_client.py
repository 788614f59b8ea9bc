"""The client of a manager: fence before each write, observer after it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.kube.objects import pod
from trainer.kube.client import DEFAULT_LOG, DeleteOptions
from trainer.kube.errors import ApiError, ConflictError, LeadershipLostError, NotFoundError, error_from_status
from trainer.kube.manager.managed_client import ManagedClient
from trainer.kube.objects import Object, ObjectKey, name_of, uid_of
from trainer.kube.resource import PODS, Resource
from trainer.kube.selection import Selection
from trainer_kube_testing import FakeClient, ManualClock


class RecordingFence:
    """Lets writes pass while it is open."""

    def __init__(self) -> None:
        self.is_open = True
        self.passed = 0

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        if not self.is_open:
            raise LeadershipLostError("the lease is not held")
        yield
        self.passed += 1


class RecordingObserver:
    """Writes down what was written."""

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
def fence() -> RecordingFence:
    return RecordingFence()


@pytest.fixture
def observer() -> RecordingObserver:
    return RecordingObserver()


@pytest.fixture
def client(server: FakeClient, fence: RecordingFence, observer: RecordingObserver) -> ManagedClient:
    return ManagedClient(server, fence=fence, writes=observer)


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
async def test_writes_pass_the_fence_and_are_reported(
    client: ManagedClient,
    fence: RecordingFence,
    observer: RecordingObserver,
    write: Callable[[ManagedClient], Awaitable[object]],
    calls: list[tuple[str, str]],
) -> None:
    """Each kind of write is made once, within the fence, and its answer is handed on."""
    await write(client)
    assert fence.passed == 1
    assert observer.calls == calls


@pytest.mark.parametrize(("write", "calls"), WRITES)
async def test_nothing_is_sent_behind_a_closed_fence(
    client: ManagedClient,
    server: FakeClient,
    fence: RecordingFence,
    observer: RecordingObserver,
    write: Callable[[ManagedClient], Awaitable[object]],
    calls: list[tuple[str, str]],
) -> None:
    """Without the lease no write reaches the server."""
    fence.is_open = False
    with pytest.raises(LeadershipLostError):
        await write(client)
    assert server.requests == []
    assert observer.calls == []


async def test_reads_need_no_lease(client: ManagedClient, server: FakeClient, fence: RecordingFence) -> None:
    """Who does not lead may look."""
    fence.is_open = False
    assert name_of(await client.get(PODS, "a", "ns")) == "a"
    assert len((await client.list(PODS)).items) == len((await client.list_page(PODS)).items) == 1
    async with client.watch(PODS), client.logs("a", "ns", DEFAULT_LOG):
        pass


async def test_uid_of_the_precondition_counts(client: ManagedClient, observer: RecordingObserver) -> None:
    """What was deleted is what the caller named, whatever the cache shows under the name."""
    uid = uid_of(await client.get(PODS, "a", "ns"))
    await client.delete(PODS, "a", "ns", DeleteOptions(uid=uid))
    assert observer.calls == [("deleted", f"pods ns/a {uid}")]


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda client: client.update(PODS, pod("a")), id="update"),
        pytest.param(lambda client: client.patch(PODS, "a", {}, "ns"), id="patch"),
        pytest.param(lambda client: client.patch(PODS, "a", {}, "ns", subresource="status"), id="status"),
        pytest.param(lambda client: client.delete(PODS, "a", "ns"), id="delete"),
    ],
)
async def test_objects_that_the_server_does_not_find_are_reported(
    client: ManagedClient,
    server: FakeClient,
    observer: RecordingObserver,
    write: Callable[[ManagedClient], Awaitable[object]],
) -> None:
    """A write to what is gone tells the cache so, and fails all the same."""
    status = {"reason": "NotFound", "details": {"name": "a", "kind": "pods"}}
    server.faults.fail(error_from_status(404, status))
    with pytest.raises(NotFoundError):
        await write(client)
    assert observer.calls == [("deleted", "pods ns/a uid of a")]


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
async def test_failed_writes_are_not_reported(
    client: ManagedClient, server: FakeClient, observer: RecordingObserver, error: ApiError
) -> None:
    """Only what the server has accepted, or says of this very object, shows in the cache."""
    server.faults.fail(error)
    with pytest.raises(type(error)):
        await client.patch(PODS, "a", {}, "ns")
    server.faults.fail(error)
    with pytest.raises(type(error)):
        await client.delete(PODS, "a", "ns")
    assert observer.calls == []
