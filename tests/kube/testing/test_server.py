"""The fake behind HTTP, asked by the real client."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import aiohttp
import anyio
import anyio.lowlevel
import pytest

from tests.kube.objects import job, pod
from trainer.kube.cache.informer import Informer
from trainer.kube.client import DeleteOptions, ListOptions, LogOptions, PatchType, Propagation, WatchOptions
from trainer.kube.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    GoneError,
    KubeError,
    NotFoundError,
    ServerTimeoutError,
    TransportError,
    UnauthorizedError,
    UnsupportedMediaTypeError,
)
from trainer.kube.objects import name_of
from trainer.kube.podlogs.container_log import ContainerLog
from trainer.kube.resource import JOBS, NAMESPACES, PODS
from trainer.kube.rest.credentials import FixedCredentials, Identity
from trainer.kube.rest.http import HttpClient
from trainer.kube.selection import EVERYTHING, Selection
from trainer.kube.testing import FakeClient, FakeServer, ManualClock, eventually, no_stray_tasks, statuses

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.kube.conftest import Background
    from tests.kube.testing.conftest import Follow
    from trainer.kube.client import Client

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}


@pytest.fixture
def fake(clock: ManualClock) -> FakeClient:
    return FakeClient(pod("a", labels={"x": "1"}), pod("b"), job("a"), NAMESPACE, clock=clock)


@pytest.fixture
async def server(fake: FakeClient) -> AsyncIterator[FakeServer]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(FakeServer(fake))


@pytest.fixture
async def client(server: FakeServer, clock: ManualClock) -> AsyncIterator[HttpClient]:
    async with AsyncExitStack() as stack:
        http = HttpClient(server.endpoint, FixedCredentials(), user_agent="test", clock=clock)
        yield await stack.enter_async_context(http)


CALLS: list[Any] = [
    pytest.param(lambda c: c.get(PODS, "a", "ns"), id="get"),
    pytest.param(lambda c: c.get(NAMESPACES, "ns"), id="get-cluster-scoped"),
    pytest.param(lambda c: c.list(PODS), id="list"),
    pytest.param(lambda c: c.list(PODS, Selection("ns", "x=1", "metadata.name=a")), id="list-selected"),
    pytest.param(lambda c: c.list(PODS, Selection(metadata_only=True)), id="list-metadata"),
    pytest.param(lambda c: c.list_page(PODS, EVERYTHING, ListOptions("1", "Exact", 1)), id="list-page"),
    pytest.param(lambda c: c.list(NAMESPACES), id="list-cluster-scoped"),
    pytest.param(lambda c: c.create(PODS, pod("c"), field_manager="m"), id="create"),
    pytest.param(lambda c: c.create(NAMESPACES, {"metadata": {"name": "new"}}), id="create-cluster-scoped"),
    pytest.param(
        lambda c: c.create(
            PODS, {"metadata": {"name": "a", "namespace": "ns"}, "target": {"name": "n"}}, subresource="binding"
        ),
        id="bind",
    ),
    pytest.param(lambda c: c.update(JOBS, job("a") | {"spec": {"suspend": True}}), id="update"),
    pytest.param(lambda c: c.update(JOBS, job("a") | {"status": {"active": 1}}, subresource="status"), id="status"),
    pytest.param(
        lambda c: c.update(NAMESPACES, NAMESPACE | {"status": {"phase": "Active"}}, subresource="status"),
        id="status-of-a-namespace",
    ),
    pytest.param(lambda c: c.patch(PODS, "a", {"metadata": {"labels": {"x": None}}}, "ns"), id="merge-patch"),
    pytest.param(
        lambda c: c.patch(
            PODS, "a", {"metadata": {"finalizers": ["f"]}}, "ns", patch_type=PatchType.STRATEGIC, field_manager="m"
        ),
        id="strategic-merge-patch",
    ),
    pytest.param(
        lambda c: c.patch(PODS, "a", [{"op": "remove", "path": "/metadata/labels"}], "ns", patch_type=PatchType.JSON),
        id="json-patch",
    ),
    pytest.param(
        lambda c: c.apply(JOBS, job("a") | {"spec": {"suspend": True}}, field_manager="m", force=True), id="apply"
    ),
    pytest.param(
        lambda c: c.apply(JOBS, job("a") | {"status": {"active": 1}}, field_manager="m", subresource="status"),
        id="apply-status",
    ),
    pytest.param(lambda c: c.delete(PODS, "a", "ns"), id="delete"),
    pytest.param(
        lambda c: c.delete(PODS, "a", "ns", DeleteOptions(Propagation.FOREGROUND, 5)), id="delete-in-the-foreground"
    ),
    pytest.param(lambda c: c.delete_collection(PODS, Selection("ns", "x=1")), id="delete-collection"),
]


@pytest.mark.parametrize("call", CALLS)
async def test_answers_as_in_process(
    fake: FakeClient, client: HttpClient, clock: ManualClock, call: Callable[[Client], Awaitable[Any]]
) -> None:
    """Through HTTP the same request reaches the fake, and its answer and effect are the same."""
    beside = FakeClient(pod("a", labels={"x": "1"}), pod("b"), job("a"), NAMESPACE, clock=clock)
    expected, answer = await call(beside), await call(client)
    if hasattr(expected, "items") and not isinstance(expected, dict):
        assert answer.items == expected.items
        assert (answer.resource_version, answer.continue_token) == (
            expected.resource_version,
            expected.continue_token,
        )
    else:
        assert answer == expected
    assert fake.requests == beside.requests
    for resource in (PODS, JOBS, NAMESPACES):
        assert fake.objects(resource) == beside.objects(resource)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        pytest.param(lambda c: c.get(PODS, "missing", "ns"), NotFoundError, id="missing"),
        pytest.param(lambda c: c.create(PODS, pod("a")), AlreadyExistsError, id="exists"),
        pytest.param(lambda c: c.update(PODS, pod("a", resourceVersion="99")), ConflictError, id="stale"),
        pytest.param(lambda c: c.list_page(PODS, EVERYTHING, ListOptions("99")), ServerTimeoutError, id="too-large"),
        pytest.param(lambda c: c.list(PODS, Selection("ns", "x in")), BadRequestError, id="malformed-selector"),
        pytest.param(
            lambda c: c.patch(JOBS, "missing", {}, "ns", patch_type=PatchType.STRATEGIC),
            NotFoundError,
            id="patch-missing",
        ),
        pytest.param(lambda c: c.request("GET", "/apis/example.com/v1/widgets"), NotFoundError, id="not-served"),
        pytest.param(lambda c: c.request("GET", "/"), NotFoundError, id="no-resource"),
        pytest.param(
            lambda c: c.request("PUT", "/api/v1/namespaces/ns/pods/a", body=pod("b")), BadRequestError, id="other-name"
        ),
        pytest.param(
            lambda c: c.request("PATCH", "/api/v1/namespaces/ns/pods/a", body={}), UnsupportedMediaTypeError, id="type"
        ),
        pytest.param(lambda c: c.request("PUT", "/api/v1/namespaces/ns/pods"), ApiError, id="method"),
        pytest.param(
            lambda c: c.request("GET", "/api/v1/namespaces/ns/pods/a/exec"), ApiError, id="unsupported-subresource"
        ),
        pytest.param(
            lambda c: c.request("GET", "/api/v1/pods", params={"limit": "many"}), BadRequestError, id="bad-number"
        ),
    ],
)
async def test_refusals(
    client: HttpClient, call: Callable[[HttpClient], Awaitable[Any]], error: type[KubeError]
) -> None:
    """Errors come with the code and reason of a real server."""
    with pytest.raises(error) as refused:
        await call(client)
    assert isinstance(refused.value, ApiError)
    assert refused.value.status["kind"] == "Status"
    assert refused.value.status["message"] == refused.value.message


async def test_retry_after(fake: FakeClient, client: HttpClient, clock: ManualClock, background: Background) -> None:
    """A 429 carries its Retry-After, which the client waits for."""
    fake.faults.fail(statuses.too_many_requests(retry_after=7), verb="create")
    creation = background(client.create(PODS, pod("c")))
    await eventually(lambda: clock.sleeping)
    assert clock.sleeping == [7.0]
    await clock.advance(7)
    await eventually(creation.done)
    assert len(fake.requests) == 2


async def test_closed_without_an_answer(fake: FakeClient, client: HttpClient) -> None:
    """A transport error of the script closes the connection; an answer may be lost after the work is done."""
    fake.faults.fail(TransportError("no"), verb="create")
    fake.faults.lose_answer(verb="create")
    for created in (False, True):
        with pytest.raises(TransportError, match="the server closed the connection"):
            await client.create(PODS, pod("c"))
        assert (fake.find(PODS, "c", "ns") is not None) == created


async def test_watch(fake: FakeClient, client: HttpClient, follow: Follow) -> None:
    """A watch streams initial events, changes and bookmarks, and ends cleanly."""
    watch = follow(client, selection=Selection("ns", "x=1"), options=WatchOptions(send_initial_events=True))
    await eventually(lambda: len(watch.events) == 2)
    fake.add(pod("c", labels={"x": "1"}))
    fake.add(pod("d"))
    fake.faults.send_bookmarks()
    fake.faults.drop_watches()
    await eventually(lambda: watch.has_ended)
    assert watch.seen == ["ADDED a", "BOOKMARK", "ADDED c", "BOOKMARK"]
    assert watch.error is None


@pytest.mark.parametrize(
    ("error", "torn", "expected", "message"),
    [
        pytest.param(statuses.expired(), False, GoneError, "too old resource version", id="error-event"),
        pytest.param(TransportError("no"), False, TransportError, "closed the connection", id="broken"),
        pytest.param(None, True, TransportError, "", id="torn"),
    ],
)
async def test_dropped_watch(
    fake: FakeClient,
    client: HttpClient,
    follow: Follow,
    error: KubeError | None,
    torn: bool,
    expected: type[KubeError],
    message: str,
) -> None:
    """However a watch breaks, the client sees the events before and a typed error."""
    watch = follow(client, options=WatchOptions("4"))
    await eventually(lambda: fake.requests)
    fake.add(pod("c"))
    fake.faults.drop_watches(error, torn=torn)
    await eventually(lambda: watch.has_ended)
    assert watch.seen == ["ADDED c"]
    assert isinstance(watch.error, expected)
    assert message in str(watch.error)


async def test_expired_version(fake: FakeClient, client: HttpClient, follow: Follow) -> None:
    """A watch from a forgotten version gets an ERROR event."""
    fake.compact()
    watch = follow(client, options=WatchOptions("1"))
    await eventually(lambda: watch.has_ended)
    assert isinstance(watch.error, GoneError)


async def test_abandoned_watch_ends(fake: FakeClient, client: HttpClient) -> None:
    """The server notices that its client has left."""
    async with client.watch(PODS, options=WatchOptions("4")):
        assert fake.faults.send_bookmarks() == 1
    await eventually(lambda: fake.faults.send_bookmarks() == 0)


async def test_logs(fake: FakeClient, client: HttpClient) -> None:
    """A log is streamed as text, and its options arrive."""
    fake.set_log("a", "ns", b"one\ntwo\n", container="main")
    options = LogOptions("main", follow=True, tail_lines=3, since_time="2026-01-01T00:00:00Z")
    async with client.logs("a", "ns", options) as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b"one\ntwo\n"
    assert fake.requests[0].body == options
    with pytest.raises(NotFoundError):
        async with client.logs("missing", "ns"):
            pass


class Rotating:
    """Credentials of which the server must refuse one before the next is shown."""

    description = "the tokens of the test"

    def __init__(self, *tokens: str) -> None:
        self._tokens = list(tokens)

    async def current(self) -> Identity:
        return Identity(f"Bearer {self._tokens[0]}")

    async def renew(self, rejected: Identity) -> Identity | None:
        if len(self._tokens) > 1:
            self._tokens.pop(0)
            return await self.current()
        return None


async def test_expiring_tokens(fake: FakeClient, clock: ManualClock) -> None:
    """Only the present tokens are accepted; a client with a newer one goes on, another gets the reason why not."""
    async with (
        FakeServer(fake, tokens={"old"}) as server,
        HttpClient(server.endpoint, Rotating("old", "new"), user_agent="test", clock=clock) as client,
    ):
        await client.get(PODS, "a", "ns")
        server.tokens = {"new"}
        await client.get(PODS, "a", "ns")
        server.tokens = set()
        with pytest.raises(UnauthorizedError, match="the tokens of the test"):
            await client.get(PODS, "a", "ns")
    assert len(fake.requests) == 2


async def test_stopped_and_started(fake: FakeClient, server: FakeServer, client: HttpClient, follow: Follow) -> None:
    """A stopped server breaks what is open and is not there; started again it is found where it was."""
    watch = follow(client, options=WatchOptions("4"))
    await eventually(lambda: fake.requests)
    await server.stop()
    await eventually(lambda: watch.has_ended)
    assert isinstance(watch.error, TransportError)
    with pytest.raises(TransportError, match="nothing listens"):
        await client.get(PODS, "a", "ns")
    await server.start()
    assert name_of(await client.get(PODS, "a", "ns")) == "a"


async def test_nothing_is_left_behind(fake: FakeClient, clock: ManualClock, background: Background) -> None:
    """When server and client are closed, no task of theirs runs on, even under a watch and a held request."""
    async with (
        no_stray_tasks(),
        FakeServer(fake) as server,
        HttpClient(server.endpoint, FixedCredentials(), user_agent="test", clock=clock) as client,
    ):
        hold = fake.faults.hold(verb="get")
        held = background(client.get(PODS, "a", "ns"))
        async with client.watch(PODS, options=WatchOptions("4")):
            await eventually(lambda: hold.waiting)
        held.cancel()
        await eventually(held.done)


async def test_items_of_built_in_lists_lack_their_types(client: HttpClient) -> None:
    """As on a real server, only the list says what its items are."""
    answer = await client.request("GET", "/api/v1/pods")
    assert (answer["apiVersion"], answer["kind"]) == ("v1", "PodList")
    assert set(answer["items"][0]) == {"metadata"}


async def test_bodies_that_are_no_objects(server: FakeServer) -> None:
    """Malformed requests are refused with what is wrong."""
    async with aiohttp.ClientSession() as session:
        for body, problem in ((b"{", "not JSON"), (b"[]", "not an object")):
            async with session.post(f"{server.endpoint.server}/api/v1/namespaces/ns/pods", data=body) as answer:
                assert answer.status == 400
                assert problem in (await answer.json())["message"]


async def test_an_informer_over_http(
    fake: FakeClient, client: HttpClient, clock: ManualClock, background: Background
) -> None:
    """All layers together survive what the fake does to them."""
    informer = Informer(client, PODS, clock=clock)
    background(informer.run())
    await eventually(lambda: informer.has_synced)
    fake.faults.drop_watches(torn=True)
    fake.add(pod("c"))
    await eventually(lambda: informer.last_error)
    await clock.advance(2)
    await eventually(lambda: [name_of(obj) for obj in informer.lister.list()] == ["a", "b", "c"])


async def test_growing_log(fake: FakeClient, client: HttpClient, background: Background, clock: ManualClock) -> None:
    """A log is followed over HTTP through breaks, torn text and a restart of the server, each line once."""
    log = fake.log("a", "ns", "main")
    container_log = ContainerLog(client, "ns", "a", "main", clock=clock)
    lines: list[bytes] = []
    has_ended = False
    following = background(container_log.follow(lines.append, is_finished=lambda: has_ended))

    async def pass_time_until(condition: Callable[[], bool]) -> None:
        with anyio.fail_after(10):
            while not condition():
                await anyio.lowlevel.checkpoint()
                await clock.advance(0.1)

    strikes: list[Callable[[], object]] = [
        lambda: None,
        fake.faults.drop_logs,
        lambda: fake.faults.drop_logs(TransportError("reset")),
        lambda: fake.faults.drop_logs(torn=True),
        lambda: fake.faults.fail(statuses.expired(), verb="log", times=2),
    ]
    for count, strike in enumerate(strikes, 1):
        strike()
        log.write(b"line %d\n" % count)
        await pass_time_until(lambda: b"".join(lines).count(b"\n") >= count)  # noqa: B023 - asked at once
    has_ended = True
    log.end()
    await pass_time_until(following.done)
    texts = [line.partition(b" ")[2] for line in b"".join(lines).splitlines()]
    assert texts == [b"line %d" % count for count in range(1, 6)]
