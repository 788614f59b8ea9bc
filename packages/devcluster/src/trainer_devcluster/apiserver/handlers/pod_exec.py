"""pods/exec: a command in a container, whose streams are the channels of a WebSocket.

Each binary message begins with the number of its channel: 0 standard input, 1 output, 2 error, 3 the Status at the end,
4 the size of the terminal, and in `v5.channel.k8s.io` 255 the end of a channel. Source: client-go's tools/remotecommand
and KEP-4006.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

import anyio
import msgspec
from aiohttp import WSMsgType, web

from trainer.kube.clock import Clock
from trainer.kube.objects import Object, uid_of
from trainer.workloads.containers import container_status
from trainer_devcluster.apiserver.authorization.authorizer import attributes_of, forbidden
from trainer_devcluster.apiserver.handlers.call import Call
from trainer_devcluster.apiserver.reads import reading
from trainer_devcluster.apiserver.reads.pod_logs import choose_container
from trainer_devcluster.apiserver.wire.params import boolean
from trainer_devcluster.container_commands import CommandError, CommandStreams, ContainerCommand, WindowSize
from trainer_kube_testing.api_semantics import statuses

_V5: Final = "v5.channel.k8s.io"
PROTOCOLS: Final = (_V5, "v4.channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _STATUS, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_STREAMS: Final = {"stdin": _STDIN, "stdout": _STDOUT, "stderr": _STDERR}
"""Query parameters that ask for a stream."""
_LARGEST_MESSAGE = 1024 * 1024
_PING_SECONDS = 10.0
_LARGEST_SIDE = 65_535
"""Columns or rows."""


async def run(call: Call) -> web.StreamResponse:
    """GET with an upgrade to WebSocket: runs a command until it ends or the client goes away."""
    _authorize_creation(call)
    command = _command(call)
    socket = web.WebSocketResponse(protocols=PROTOCOLS, compress=False, max_msg_size=_LARGEST_MESSAGE)
    acceptance = socket.can_prepare(call.request)
    if not acceptance:
        raise statuses.bad_request("Upgrade request required: the dev cluster runs commands over WebSocket only")
    if acceptance.protocol is None:
        raise statuses.bad_request(f"none of the subprotocols is supported; use {' or '.join(PROTOCOLS)}")
    await call.begin(socket)
    async with anyio.create_task_group() as connected:
        streams = _Channels(socket, connected.cancel_scope, closes_input=acceptance.protocol == _V5)
        connected.start_soon(streams.notice_end, call.backend.clock)
        await streams.end(await _outcome(call, command, streams))
        connected.cancel_scope.cancel()
    return socket


def _authorize_creation(call: Call) -> None:
    """A GET by WebSocket needs `create` as well, since Kubernetes 1.35 (AuthorizePodWebsocketUpgradeCreatePermission).

    Raises:
        ApiError: 403.
    """
    request = call.request
    attributes = replace(attributes_of(call.user, request.method, request.path, request.query), verb="create")
    decision = call.access.authorizer.authorize(attributes)
    if not decision.allowed:
        raise forbidden(attributes, decision.reason)


def _command(call: Call) -> ContainerCommand:
    """The command that the query asks for.

    Raises:
        ApiError: 404, there is no such pod; 400, it has no node yet, or the query makes no sense; 500, the container
            does not run, as a kubelet says it.
    """
    query, pod = call.query, reading.get(call.backend, call.target)
    words = tuple(call.request.query.getall("command", []))
    streams = {stream for name, stream in _STREAMS.items() if boolean(query, name)}
    terminal = boolean(query, "tty")
    if not words or not words[0]:
        raise statuses.bad_request("you must specify a command: PodExecOptions.command is empty")
    if any("\0" in word for word in words):
        raise statuses.bad_request("PodExecOptions.command has a zero character, which no argument can have")
    if not streams:
        raise statuses.bad_request("you must specify at least 1 of stdin, stdout, stderr")
    container = choose_container(pod, query.get("container", ""))
    if not pod["spec"].get("nodeName"):
        raise statuses.bad_request(f"pod {call.target.name} does not have a host assigned")
    if "running" not in (container_status(pod, container).get("state") or {}):
        raise statuses.internal_error(f'unable to upgrade connection: container not found ("{container}")')
    return ContainerCommand(uid_of(pod), container, words, frozenset(streams), terminal)


async def _outcome(call: Call, command: ContainerCommand, streams: CommandStreams) -> Object:
    """The Status of a command that has ended."""
    try:
        code = await call.backend.commands.run(command, streams)
    except CommandError as error:
        return statuses.internal_error(f"error executing command in container: {error}").status
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    causes = {"causes": [{"reason": "ExitCode", "message": str(code)}]}
    text = f"command terminated with non-zero exit code: exit status {code}"
    failed = {"status": "Failure", "message": text, "reason": "NonZeroExitCode", "details": causes}
    return {"metadata": {}, **failed}


class _Channels(CommandStreams):
    """The channels of one connection, whose end is the end of the scope."""

    def __init__(self, socket: web.WebSocketResponse, connected: anyio.CancelScope, *, closes_input: bool) -> None:
        self._socket = socket
        self._connected = connected
        self._closes_input = closes_input

    async def input(self) -> AsyncIterator[bytes | WindowSize]:
        """See `CommandStreams`."""
        async for message in self._socket:
            # The official client for Python sends text, which counts as its bytes.
            content = message.data.encode() if message.type is WSMsgType.TEXT else message.data
            if not content or not isinstance(content, bytes):
                continue
            channel, data = content[0], content[1:]
            if channel == _STDIN and data:
                yield data
            elif channel == _CLOSE and self._closes_input and data == bytes([_STDIN]):
                yield b""
            elif channel == _RESIZE and (size := _size(data)) is not None:
                yield size
        self._connected.cancel()
        await anyio.sleep_forever()

    async def send(self, stream: int, data: bytes) -> None:
        """See `CommandStreams`."""
        try:
            await self._socket.send_bytes(bytes([stream]) + data)
        except ConnectionError:
            self._connected.cancel()
            await anyio.sleep_forever()

    async def notice_end(self, clock: Clock) -> None:
        """Write something now and then: while a command takes no input nothing is read, not even that a client left."""
        while True:
            await clock.sleep(_PING_SECONDS)
            try:
                await self._socket.ping()
            except ConnectionError:
                self._connected.cancel()

    async def end(self, status: Object) -> None:
        """Say how the command has ended, and close the connection."""
        await self.send(_STATUS, msgspec.json.encode(status))
        await self._socket.close()


class _Size(msgspec.Struct):
    width: int = msgspec.field(name="Width")
    height: int = msgspec.field(name="Height")


_sizes = msgspec.json.Decoder(_Size)


def _size(text: bytes) -> WindowSize | None:
    """The size in a message, None for one that makes no sense."""
    try:
        size = _sizes.decode(text)
    except msgspec.DecodeError:
        return None
    is_sound = 0 < size.width <= _LARGEST_SIDE and 0 < size.height <= _LARGEST_SIDE
    return WindowSize(size.width, size.height) if is_sound else None
