"""Commands in containers, against a scripted server on the loopback interface."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestServer

from trainer.kube.errors import (
    ApiError,
    ForbiddenError,
    InternalError,
    NotFoundError,
    TransportError,
    UnauthorizedError,
)
from trainer.kube.remote_command import CommandOptions, OutputStream, RemoteCommand
from trainer.kube.rest.credentials import Credentials, FixedCredentials, Identity, RenewableCredentials
from trainer.kube.rest.http import HttpClient
from trainer.kube.rest.transport import Endpoint, Transport
from trainer_kube_testing import ManualClock

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
LIST = CommandOptions(("ls", "-l", "a b", ""), "trainer")
SUCCESS = b'\x03{"metadata":{},"status":"Success"}'
Serve: TypeAlias = Callable[[web.WebSocketResponse], Awaitable[None]]


class Server:
    """Serves one kind of WebSocket, or refuses it."""

    def __init__(
        self, serve: Serve | None = None, *, protocols: tuple[str, ...] = (V5, V4), autoping: bool = True
    ) -> None:
        self.requests: list[web.BaseRequest] = []
        self.refusals: list[tuple[int, Any]] = []
        self._serve = serve
        self._protocols = protocols
        self._autoping = autoping

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        if self.refusals:
            code, body = self.refusals.pop(0)
            return web.json_response(body, status=code)
        socket = web.WebSocketResponse(protocols=self._protocols, autoping=self._autoping)
        await socket.prepare(request)
        if self._serve is not None:
            await self._serve(socket)
        return socket

    @asynccontextmanager
    async def client(
        self, credentials: Credentials | None = None, clock: ManualClock | None = None
    ) -> AsyncIterator[HttpClient]:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self.handle)
        async with TestServer(application) as server:
            endpoint = Endpoint(f"http://127.0.0.1:{server.port}")
            clock = clock or ManualClock()
            async with Transport(endpoint, credentials or FixedCredentials(), user_agent="t", clock=clock) as transport:
                yield HttpClient(transport)


def sending(*messages: bytes) -> Serve:
    async def serve(socket: web.WebSocketResponse) -> None:
        for message in messages:
            await socket.send_bytes(message)

    return serve


async def written(command: RemoteCommand) -> list[tuple[OutputStream, bytes]]:
    return [item async for item in command.output()]


@pytest.mark.parametrize(
    ("options", "query"),
    [
        pytest.param(
            LIST,
            [*[("command", word) for word in LIST.command], ("container", "trainer"), ("stdout", "true"),
             ("stderr", "true")],
            id="a command",
        ),
        pytest.param(
            CommandOptions(("sh",), stdin=True, tty=True),
            [("command", "sh"), ("stdin", "true"), ("stdout", "true"), ("tty", "true")],
            id="a terminal",
        ),
    ],
)  # fmt: skip
async def test_request(options: CommandOptions, query: list[tuple[str, str]]) -> None:
    """The command is in the query, and credentials and impersonation go with it as with any other request."""
    server = Server(sending(SUCCESS))
    async with server.client(FixedCredentials("Bearer x")) as client:
        user = client.impersonating({"username": "u", "groups": ["g", "h"]})
        async with user.execute("p", "ns", options) as command:
            await written(command)
    (request,) = server.requests
    headers = request.headers
    assert (request.method, request.path) == ("GET", "/api/v1/namespaces/ns/pods/p/exec")
    assert list(request.query.items()) == query
    assert (headers["Authorization"], headers["User-Agent"], headers["Impersonate-User"]) == ("Bearer x", "t", "u")
    assert headers.getall("Impersonate-Group") == ["g", "h"]
    assert headers["Sec-WebSocket-Protocol"] == f"{V5},{V4}"


async def test_output() -> None:
    """Output and errors arrive in their order; empty messages and channels of other times are passed over."""
    messages = (b"\x01", b"\x02", b"\x03", b"\x01a\n", b"\x02b\n", b"\x09x", b"", b"\xff\x01", b"\x01c", SUCCESS)
    async with Server(sending(*messages)).client() as client, client.execute("p", "ns", LIST) as command:
        assert await written(command) == [
            (OutputStream.OUTPUT, b"a\n"),
            (OutputStream.ERROR, b"b\n"),
            (OutputStream.OUTPUT, b"c"),
        ]
        assert command.exit_code == 0


def ended(reason: str, *causes: Mapping[str, str], message: str = "m") -> bytes:
    status = {"status": "Failure", "reason": reason, "message": message, "details": {"causes": list(causes)}}
    return b"\x03" + json.dumps(status).encode()


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        pytest.param(ended("NonZeroExitCode", {"reason": "ExitCode", "message": "3"}), 3, id="exit code"),
        pytest.param(
            ended("NonZeroExitCode", {"reason": "Other", "message": "4"}, {"reason": "ExitCode", "message": "137"}),
            137,
            id="several causes",
        ),
        pytest.param(ended("InternalError", message="no such program"), "no such program", id="not started"),
        pytest.param(ended("NonZeroExitCode", {"reason": "ExitCode", "message": "x"}), "m", id="no number"),
        pytest.param(b"\x03what", "no Status", id="no Status"),
        pytest.param(None, "default/p: the connection ended before the command: the server closed it", id="nothing"),
    ],
)
async def test_how_it_ends(last: bytes | None, expected: int | str) -> None:
    """The exit code is in the last message; a command that did not run, or of which nobody knows, is an error."""
    async with (
        Server(sending(*([] if last is None else [last]))).client() as client,
        client.execute("p", "default", LIST) as command,
    ):
        if isinstance(expected, int):
            assert await written(command) == []
            assert command.exit_code == expected
            return
        with pytest.raises((ApiError, TransportError), match=expected):
            await written(command)


@pytest.mark.parametrize(
    ("code", "body", "error", "message"),
    [
        pytest.param(
            403,
            {"reason": "Forbidden", "message": 'pods "p" is forbidden'},
            ForbiddenError,
            'pods "p" is forbidden',
            id="forbidden",
        ),
        pytest.param(
            404, {"reason": "NotFound", "message": 'pods "p" not found'}, NotFoundError, 'pods "p" not found', id="gone"
        ),
        pytest.param(
            500,
            {"reason": "InternalError", "message": 'container not found ("c")'},
            InternalError,
            "container not found",
            id="not running",
        ),
        pytest.param(401, {}, UnauthorizedError, "does not accept the credentials", id="credentials"),
        pytest.param(200, "a proxy", TransportError, "no WebSocket: a proxy in between has to let", id="no upgrade"),
    ],
)
async def test_refusals(code: int, body: Any, error: type[Exception], message: str) -> None:
    """A refusal is the typed error of its Status, and nothing is asked twice."""
    server = Server()
    server.refusals.append((code, body))
    async with server.client() as client:
        with pytest.raises(error, match=message):
            async with client.execute("p", "ns", LIST):
                pass
    assert len(server.requests) == 1


async def test_renewed_credentials() -> None:
    """Credentials that have expired are renewed once."""
    tokens = iter("ab")

    async def load() -> Identity:
        return Identity(f"Bearer {next(tokens)}")

    server = Server(sending(SUCCESS))
    server.refusals.append((401, {}))
    async with (
        server.client(RenewableCredentials(load, description="d")) as client,
        client.execute("p", "ns", LIST) as command,
    ):
        await written(command)
    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer a", "Bearer b"]


@pytest.mark.parametrize("protocol", [V5, V4])
async def test_input(protocol: str) -> None:
    """Input goes in messages that servers take; its end is said where the protocol has a word for it."""
    received: list[bytes] = []
    done = anyio.Event()

    async def serve(socket: web.WebSocketResponse) -> None:
        async for message in socket:
            assert message.type is WSMsgType.BINARY
            received.append(message.data)
            if message.data.startswith(b"\x04"):
                break
        await socket.send_bytes(SUCCESS)
        done.set()

    async with (
        Server(serve, protocols=(protocol,)).client() as client,
        client.execute("p", "ns", CommandOptions(("cat",), stdin=True)) as command,
    ):
        await command.write(b"x" * 40_000)
        if protocol == V5:
            await command.end_input()
        else:
            with pytest.raises(TransportError, match=r"older than Kubernetes 1\.30"):
                await command.end_input()
        await command.resize(100, 30)
        assert await written(command) == []
        await done.wait()
    assert b"".join(message[1:] for message in received if message[0] == 0) == b"x" * 40_000
    assert max(map(len, received)) <= 32 * 1024 + 1
    assert received[2:] == [*([b"\xff\0"] if protocol == V5 else []), b'\x04{"Width":100,"Height":30}']


async def test_input_after_the_end() -> None:
    """Input that comes too late is lost without a word, since the end of the command says what there is to say."""
    async with Server(sending(SUCCESS)).client() as client:
        async with client.execute("p", "ns", CommandOptions(("true",), stdin=True)) as command:
            await written(command)
            for _ in range(100):
                await command.write(b"x" * 100_000)
        assert command.exit_code == 0


async def test_keep_alive() -> None:
    """A silent connection is not idle for proxies."""
    clock, pinged = ManualClock(), anyio.Event()

    async def serve(socket: web.WebSocketResponse) -> None:
        message = await socket.receive()
        assert message.type is WSMsgType.PING
        pinged.set()
        await socket.send_bytes(SUCCESS)

    async with (
        Server(serve, autoping=False).client(clock=clock) as client,
        client.execute("p", "ns", LIST) as command,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(command.keep_alive)
        await clock.wait_for_sleepers(1)
        await clock.advance(20)
        await pinged.wait()
        await written(command)
        tasks.cancel_scope.cancel()
