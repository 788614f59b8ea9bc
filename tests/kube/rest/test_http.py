"""HttpClient against a scripted server on the loopback interface."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from structlog.testing import capture_logs

from tests.kube.objects import pod
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import (
    DeleteOptions,
    EventType,
    ListOptions,
    LogOptions,
    ObjectRequest,
    PatchType,
    Propagation,
    Verb,
    WatchOptions,
)
from trainer.kube.errors import (
    GoneError,
    NotFoundError,
    TransportError,
)
from trainer.kube.objects import name_of
from trainer.kube.resource import NODES, PODS, Resource
from trainer.kube.rest import http
from trainer.kube.rest.credentials import Credentials, FixedCredentials
from trainer.kube.rest.http import HttpClient
from trainer.kube.rest.transport import Endpoint, Transport, WarningHandler, log_warning
from trainer.kube.selection import Selection
from trainer_kube_testing import ManualClock

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Seen:
    """A request as the server saw it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class ApiServer:
    """Answers each request with the next scripted answer, the last one forever."""

    def __init__(self) -> None:
        self.answers: list[Handler] = [json_answer({})]
        self.seen: list[Seen] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append(
            Seen(
                request.method,
                request.path,
                dict(request.query),
                dict(request.headers),
                json.loads(body) if body else None,
            )
        )
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request)


def json_answer(body: Any, status: int = 200, **headers: str) -> Handler:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(
            body, status=status, headers={name.replace("_", "-"): v for name, v in headers.items()}
        )

    return answer


def text_answer(text: str, status: int = 200) -> Handler:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text=text, status=status)

    return answer


def failure(code: int, reason: str, message: str = "no", **headers: str) -> Handler:
    return json_answer({"kind": "Status", "code": code, "reason": reason, "message": message}, code, **headers)


async def broken(request: web.Request) -> web.StreamResponse:
    """Closes the connection instead of answering."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def chunks_answer(*chunks: bytes, then: Callable[[web.Request], Awaitable[None]] | None = None) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if then is not None:
            await then(request)
        return response

    return answer


async def abort(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


async def stay_silent(_: web.Request) -> None:
    await anyio.sleep_forever()


def event(kind: str, obj: Any) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


@pytest.fixture
def api() -> ApiServer:
    return ApiServer()


Connect: TypeAlias = Callable[..., Awaitable[HttpClient]]


@pytest.fixture
async def connect_to(api: ApiServer, clock: ManualClock) -> AsyncIterator[Connect]:
    """Opens clients of the server."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", api.handle)
    server = TestServer(application)
    await server.start_server()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.close)

        async def connect(
            credentials: Credentials | None = None, path: str = "", warn: WarningHandler = log_warning
        ) -> HttpClient:
            endpoint = Endpoint(f"http://127.0.0.1:{server.port}{path}")
            credentials = credentials or FixedCredentials()
            transport = Transport(endpoint, credentials, user_agent="trainer/test", clock=clock, warn=warn)
            return HttpClient(await stack.enter_async_context(transport))

        yield connect


@pytest.fixture
async def client(connect_to: Connect) -> HttpClient:
    return await connect_to()


JOBSET = {"metadata": {"name": "j", "namespace": "ns"}, "spec": {}}
POD_PATH = "/api/v1/namespaces/ns/pods/p"
JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
JOBSET_PATH = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets/j"


@pytest.mark.parametrize(
    ("call", "method", "path", "query", "content_type", "body"),
    [
        pytest.param(lambda c: c.get(PODS, "p", "ns"), "GET", POD_PATH, {}, None, None, id="get"),
        pytest.param(lambda c: c.get(NODES, "n"), "GET", "/api/v1/nodes/n", {}, None, None, id="get-cluster-scoped"),
        pytest.param(
            lambda c: c.get(JOBSETS, "j", "ns", subresource="scale"),
            "GET", f"{JOBSET_PATH}/scale", {}, None, None, id="get-subresource",
        ),
        pytest.param(
            lambda c: c.create(PODS, pod("p"), field_manager="m"),
            "POST", "/api/v1/namespaces/ns/pods", {"fieldManager": "m"}, "application/json", pod("p"), id="create",
        ),
        pytest.param(
            lambda c: c.send(ObjectRequest(Verb.CREATE, PODS, "p", "ns", pod("p"), dry_run=True)),
            "POST", "/api/v1/namespaces/ns/pods", {"dryRun": "All"}, "application/json", pod("p"), id="dry-run",
        ),
        pytest.param(
            lambda c: c.update(JOBSETS, JOBSET, subresource="status"),
            "PUT", f"{JOBSET_PATH}/status", {}, "application/json", JOBSET, id="update-status",
        ),
        pytest.param(
            lambda c: c.patch(PODS, "p", {"a": None}, "ns"),
            "PATCH", POD_PATH, {}, "application/merge-patch+json", {"a": None}, id="merge-patch",
        ),
        pytest.param(
            lambda c: c.patch(
                PODS, "p", [{"op": "remove", "path": "/a"}], "ns", patch_type=PatchType.JSON, field_manager="m"
            ),
            "PATCH", POD_PATH, {"fieldManager": "m"}, "application/json-patch+json",
            [{"op": "remove", "path": "/a"}], id="json-patch",
        ),
        pytest.param(
            lambda c: c.patch(PODS, "p", {}, "ns", patch_type=PatchType.STRATEGIC),
            "PATCH", POD_PATH, {}, "application/strategic-merge-patch+json", {}, id="strategic-patch",
        ),
        pytest.param(
            lambda c: c.apply(JOBSETS, JOBSET, field_manager="m"),
            "PATCH", JOBSET_PATH, {"fieldManager": "m"}, "application/apply-patch+yaml", JOBSET, id="apply",
        ),
        pytest.param(
            lambda c: c.apply(JOBSETS, JOBSET, field_manager="m", force=True, subresource="status"),
            "PATCH", f"{JOBSET_PATH}/status", {"fieldManager": "m", "force": "true"},
            "application/apply-patch+yaml", JOBSET, id="apply-with-force",
        ),
        pytest.param(
            lambda c: c.delete(PODS, "p", "ns"),
            "DELETE", POD_PATH, {}, "application/json", {"apiVersion": "v1", "kind": "DeleteOptions"}, id="delete",
        ),
        pytest.param(
            lambda c: c.delete(PODS, "p", "ns", DeleteOptions(Propagation.FOREGROUND, 0, "u", "7")),
            "DELETE", POD_PATH, {}, "application/json",
            {
                "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground",
                "gracePeriodSeconds": 0, "preconditions": {"uid": "u", "resourceVersion": "7"},
            },
            id="delete-with-options",
        ),
        pytest.param(
            lambda c: c.delete_collection(PODS, Selection("ns", "a=b", "c=d")),
            "DELETE", "/api/v1/namespaces/ns/pods", {"labelSelector": "a=b", "fieldSelector": "c=d"},
            "application/json", {"apiVersion": "v1", "kind": "DeleteOptions"}, id="delete-collection",
        ),
        pytest.param(
            lambda c: c.list_page(PODS, Selection(None, "a in (b,c)"), ListOptions("0", limit=500)),
            "GET", "/api/v1/pods", {"labelSelector": "a in (b,c)", "resourceVersion": "0", "limit": "500"},
            None, None, id="list-page",
        ),
        pytest.param(
            lambda c: c.request("POST", "/apis/x", params={"dryRun": "All", "pretty": False, "none": None}, body={}),
            "POST", "/apis/x", {"dryRun": "All", "pretty": "false"}, "application/json", {}, id="raw",
        ),
    ],
)  # fmt: skip
async def test_requests_on_the_wire(
    client: HttpClient,
    api: ApiServer,
    call: Callable[[HttpClient], Awaitable[Any]],
    method: str,
    path: str,
    query: dict[str, str],
    content_type: str | None,
    body: Any,
) -> None:
    """Every operation becomes the request that the API documents."""
    await call(client)
    [seen] = api.seen
    assert (seen.method, seen.path, seen.query, seen.body) == (method, path, query, body)
    assert seen.headers.get("Content-Type") == content_type
    assert seen.headers["User-Agent"] == "trainer/test"
    assert seen.headers["Accept"] == "application/json"
    assert "Authorization" not in seen.headers


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="empty"),
        *[pytest.param(name, id=name) for name in (".", "..", "../x", "a/b", "a?b", "a#b", "a%2fb", "a b")],
        pytest.param("a\r\nX-Header: b", id="line-end"),
        pytest.param("\0", id="nul"),
        pytest.param("\u00e4", id="umlaut"),
        pytest.param("\ud800", id="lone-surrogate"),
        pytest.param("a" * 254, id="long"),
        pytest.param("a" * 3_000_000, id="very-long"),
    ],
)
async def test_names_that_no_object_has(client: HttpClient, api: ApiServer, name: str) -> None:
    """A name that a user has made up is not found, without a request, whatever it would have addressed."""

    async def read_log() -> None:
        async with client.logs(name, "ns"):
            pass

    obj = {"metadata": {"name": name, "namespace": "ns"}}
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: client.get(PODS, name, "ns"),
        lambda: client.delete(PODS, name, "ns"),
        lambda: client.apply(PODS, obj, field_manager="test"),
        lambda: client.get(NODES, name),
        read_log,
    ]
    if name:
        calls.append(lambda: client.get(PODS, "p", name))
    for call in calls:
        with pytest.raises(NotFoundError, match="not found: no object can have this name") as caught:
            await call()
        assert len(str(caught.value)) < 300
    assert api.seen == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(lambda c: c.get(PODS, "p"), "pods are namespaced", id="no-namespace"),
        pytest.param(lambda c: c.create(PODS, {"metadata": {"name": "p"}}), "pods are namespaced", id="create"),
        pytest.param(lambda c: c.delete_collection(PODS), "pods are namespaced", id="delete-collection"),
    ],
)
async def test_incomplete_requests_are_not_sent(
    client: HttpClient, api: ApiServer, call: Callable[[HttpClient], Awaitable[Any]], message: str
) -> None:
    """A missing namespace would address something else, such as the whole collection."""
    with pytest.raises(ValueError, match=message):
        await call(client)
    assert api.seen == []


async def test_base_url_with_a_path(connect_to: Connect, api: ApiServer) -> None:
    """Gateways serve clusters below a path."""
    client = await connect_to(path="/k8s/clusters/c-1/")
    await client.get(NODES, "n")
    assert api.seen[0].path == "/k8s/clusters/c-1/api/v1/nodes/n"


async def test_items_of_lists_get_their_kind(client: HttpClient, api: ApiServer) -> None:
    """The server leaves apiVersion and kind out of the items of built-in lists."""
    api.answers = [json_answer({"items": [{"metadata": {"name": "a"}}], "metadata": {"resourceVersion": "7"}})]
    listed = await client.list(PODS)
    assert listed.items == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}]
    assert listed.resource_version == "7"


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        pytest.param(failure(404, "NotFound", 'pods "p" not found'), NotFoundError, 'pods "p" not found', id="status"),
        pytest.param(text_answer("404 page not found\n", 404), NotFoundError, "404 page not found", id="text"),
        pytest.param(text_answer("<html>"), TransportError, "not from a Kubernetes API server", id="not-json"),
        pytest.param(text_answer("[]"), TransportError, "not from a Kubernetes API server", id="not-an-object"),
    ],
)
async def test_failures_are_typed(
    client: HttpClient, api: ApiServer, answer: Handler, error: type[Exception], message: str
) -> None:
    """Every failing answer becomes the documented error with the server's message."""
    api.answers = [answer]
    with pytest.raises(error, match=message):
        await client.get(PODS, "p", "ns")
    assert len(api.seen) == 1


@pytest.mark.parametrize(
    "body", ["", "<html>", '{"items":[{"a":1}', '{"items":[{"a":1},', '{"items":{}}', "[]", '{"items":[\xff]}']
)
async def test_what_is_no_list_is_refused(client: HttpClient, api: ApiServer, body: str) -> None:
    """A broken or foreign answer is an error, never an empty list."""
    api.answers = [text_answer(body)]
    with pytest.raises(TransportError, match="cut off, or not from a Kubernetes API server"):
        await client.list_page(PODS)


@pytest.mark.parametrize(
    ("items", "names"),
    [
        pytest.param("null", [], id="null"),
        pytest.param("[]", [], id="empty"),
        pytest.param(' [ {"metadata": {"name": "a"}},\n {"metadata": {"name": "b"}} ]', ["a", "b"], id="pretty"),
    ],
)
async def test_a_page(client: HttpClient, api: ApiServer, items: str, names: list[str]) -> None:
    """Items stay as the server wrote them, beside version and token, wherever these stand."""
    api.answers = [text_answer(f'{{"items": {items}, "metadata": {{"continue": "c", "resourceVersion": "7"}}}}')]
    page = await client.list_page(PODS)
    assert [item["metadata"]["name"] for item in page.items] == names
    assert (page.resource_version, page.continue_token) == ("7", "c")


async def test_one_deep_object_in_a_page(client: HttpClient, api: ApiServer) -> None:
    """One as deep as an API server lets it be keeps nobody from reading the others; what is deeper is an error."""
    api.answers = []
    for depth in (9_900, 1_000_000):
        deep = '{"f:a":' * depth + "{}" + "}" * depth
        odd = f'{{"metadata":{{"name":"odd","managedFields":[{{"fieldsV1":{deep}}}]}}}}'
        api.answers.append(text_answer(f'{{"items":[{odd},{{"metadata":{{"name":"a"}}}}],"metadata":{{}}}}'))
    page = await client.list_page(PODS)
    kept = [CachedObject.compact(raw, "v1", "Pod") for raw in page.raw_items]
    assert [name_of(obj) for obj in kept] == ["odd", "a"]
    with pytest.raises(TransportError, match="nested too deeply"):
        await client.list_page(PODS)


def open_connections(client: HttpClient) -> int:
    """Number of connections in use, as opposed to those that wait in the pools."""
    sessions = (client._transport._requests, client._transport._streams)
    return sum(len(session.connector._acquired) for session in sessions if session.connector is not None)


async def test_warnings_for_a_screen(connect_to: Connect, api: ApiServer) -> None:
    """Deprecations and unknown fields go to the given function instead of the log; codes other than 299 are dropped."""
    reported: list[tuple[str, str]] = []
    api.answers = [json_answer({}, Warning='199 - "stale", 299 - "old version", 299 - "unknown field \\"spec.x\\""')]
    client = await connect_to(warn=lambda path, warning: reported.append((path, warning)))
    with capture_logs() as logs:
        await client.create(NODES, {})
    assert reported == [("/api/v1/nodes", "old version"), ("/api/v1/nodes", 'unknown field "spec.x"')]
    assert not logs


@pytest.mark.parametrize(
    ("options", "extra"),
    [
        pytest.param(WatchOptions("5", 300), {"resourceVersion": "5", "timeoutSeconds": "300"}, id="plain"),
        pytest.param(
            WatchOptions("", 400, send_initial_events=True),
            {"timeoutSeconds": "400", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
            id="initial-events",
        ),
    ],
)
async def test_watch_query(client: HttpClient, api: ApiServer, options: WatchOptions, extra: dict[str, str]) -> None:
    """Watches ask for bookmarks and an end; booleans are written in lower case."""
    api.answers = [chunks_answer()]
    async with client.watch(PODS, Selection("ns", "a=b"), options) as events:
        assert [item async for item in events] == []
    [seen] = api.seen
    assert seen.path == "/api/v1/namespaces/ns/pods"
    assert seen.query == {"watch": "true", "allowWatchBookmarks": "true", "labelSelector": "a=b"} | extra


async def watch_to_the_end(client: HttpClient) -> None:
    async with client.watch(PODS) as events:
        async for _ in events:
            pass


EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 1 (2)"}


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        pytest.param(json_answer(EXPIRED, 410), GoneError, "too old", id="status"),
        pytest.param(
            chunks_answer(event("ADDED", pod("a")), then=abort), TransportError, "GET http", id="connection-lost"
        ),
    ],
)
async def test_watch_failures_are_typed(
    client: HttpClient, api: ApiServer, answer: Handler, error: type[Exception], message: str
) -> None:
    """Whether the server refuses, reports an error in the stream or vanishes, the caller gets the typed error."""
    api.answers = [answer]
    with pytest.raises(error, match=message):
        await watch_to_the_end(client)


async def test_leaving_a_watch_closes_its_connection(client: HttpClient, api: ApiServer) -> None:
    """The server notices at once when nobody watches any more, also after a cancellation."""
    closed = anyio.Event()

    async def until_closed(_: web.Request) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            closed.set()

    async def watch() -> None:
        async with client.watch(PODS) as events:
            async for _ in events:
                received.set()

    received = anyio.Event()
    api.answers = [chunks_answer(event("ADDED", pod("a")), then=until_closed)]
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await received.wait()
            tasks.cancel_scope.cancel()
        await closed.wait()
    assert open_connections(client) == 0


async def test_streams_do_not_take_connections_of_requests(client: HttpClient, api: ApiServer) -> None:
    """However many watches are open, a request gets through."""
    api.answers = [chunks_answer(event("ADDED", pod("a")), then=stay_silent)] * 120 + [json_answer({"kind": "Node"})]
    async with AsyncExitStack() as stack:
        with anyio.fail_after(20):
            for _ in range(120):
                await stack.enter_async_context(client.watch(PODS))
            assert await client.get(NODES, "n") == {"kind": "Node"}


async def test_logs_come_in_chunks_as_they_arrive(client: HttpClient, api: ApiServer) -> None:
    """A follower sees output before the container ends."""
    go_on = anyio.Event()

    async def more(_: web.Request) -> None:
        await go_on.wait()

    api.answers = [chunks_answer(b"epoch 1\nepo", then=more)]
    options = LogOptions("node", follow=True, timestamps=True, since_time="2026-01-01T00:00:00Z", tail_lines=5)
    async with client.logs("p", "ns", options) as chunks:
        assert await anext(chunks) == b"epoch 1\nepo"
        go_on.set()
        assert [chunk async for chunk in chunks] == []
    [seen] = api.seen
    assert seen.path == f"{POD_PATH}/log"
    assert seen.query == {
        "container": "node",
        "follow": "true",
        "timestamps": "true",
        "sinceTime": "2026-01-01T00:00:00Z",
        "tailLines": "5",
    }


async def test_silent_watch_is_given_up(client: HttpClient, api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence beyond the time at which the server ends a watch means that the connection is dead."""
    monkeypatch.setattr(http, "WATCH_IDLE_SLACK", 0.05)
    api.answers = [chunks_answer(event("ADDED", pod("a")), then=stay_silent)]
    async with client.watch(PODS, options=WatchOptions(timeout_seconds=0)) as events:
        assert (await anext(events)).type is EventType.ADDED
        with pytest.raises(TransportError, match="timed out"):
            await anext(events)


async def test_metadata_alone_can_be_asked_for(client: HttpClient, api: ApiServer) -> None:
    """A selection of metadata only is negotiated in lists and in watches."""
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}
    api.answers = [json_answer({"metadata": {"resourceVersion": "1"}, "items": [partial]}), chunks_answer()]
    await client.list_page(PODS, Selection(metadata_only=True))
    async with client.watch(PODS, Selection(metadata_only=True)):
        pass
    kinds = [request.headers["Accept"].split(";")[1] for request in api.seen]
    assert kinds == ["as=PartialObjectMetadataList", "as=PartialObjectMetadata"]


async def test_impersonation(api: ApiServer, connect_to: Connect) -> None:
    """A client that acts for a user names them and each of their groups, beside our own credentials."""
    headers: list[tuple[str, list[str], list[str]]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        names = ("Impersonate-User", "Impersonate-Group")
        users, groups = (request.headers.getall(name, []) for name in names)
        headers.append((request.headers["Authorization"], users, groups))
        return web.json_response({})

    api.answers = [answer]
    client = await connect_to(FixedCredentials("Bearer ours"))
    acting = client.impersonating({"username": "jane", "groups": ["a", "b"]})
    await acting.get(NODES, "n")
    async with acting.logs("p", "ns") as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b"{}"
    await client.get(NODES, "n")
    assert headers == [("Bearer ours", ["jane"], ["a", "b"])] * 2 + [("Bearer ours", [], [])]


async def test_silent_log_is_given_up(client: HttpClient, api: ApiServer) -> None:
    """A connection on which nothing comes any more ends with an error, so that whoever follows connects again."""
    api.answers = [chunks_answer(b"one\n", then=stay_silent)]
    async with client.logs("p", "ns", LogOptions("node", follow=True, idle_timeout=0.2)) as chunks:
        assert await anext(chunks) == b"one\n"
        with anyio.fail_after(5), pytest.raises(TransportError, match="sent nothing for too long"):
            await anext(chunks)
