"""The streams of a command as the channels of a WebSocket.

Each binary message begins with the number of its channel. The last message of the server, on channel 3, is a Status; in
it is the exit code. Version 5 of the protocol is version 4 with a message that closes a channel (KEP-4006, Kubernetes
1.30). Source: client-go's tools/remotecommand.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

import aiohttp
import msgspec

from trainer.kube.clock import Clock
from trainer.kube.errors import TransportError, error_from_status
from trainer.kube.remote_command import OutputStream, RemoteCommand

_V5: Final = "v5.channel.k8s.io"
PROTOCOLS: Final = (_V5, "v4.channel.k8s.io")
_STDIN, _STATUS, _RESIZE, _CLOSE = 0, 3, 4, 255
_LARGEST_INPUT = 32 * 1024
"""Bytes of a message; API servers refuse large ones."""
_PING_SECONDS = 20.0
"""Load balancers end connections that are silent for a minute."""
_OUTPUTS: Final = {int(stream): stream for stream in OutputStream}

_status = msgspec.json.Decoder(dict[str, Any])


class CommandChannels(RemoteCommand):
    """A command over an open WebSocket; `name` is the request in messages."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse[Any], name: str, clock: Clock) -> None:
        self._socket = socket
        self._name = name
        self._clock = clock
        self._exit_code: int | None = None

    @property
    def exit_code(self) -> int:
        """See `RemoteCommand`."""
        assert self._exit_code is not None
        return self._exit_code

    async def output(self) -> AsyncGenerator[tuple[OutputStream, bytes], None]:
        """See `RemoteCommand`."""
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel == _STATUS and data:
                self._exit_code = _exit_code_of(data, self._name)
                return
            if channel in _OUTPUTS and data:
                yield _OUTPUTS[channel], data
        error = self._socket.exception()
        raise TransportError(
            f"{self._name}: the connection ended before the command: {error or 'the server closed it'}"
        )

    async def write(self, data: bytes) -> None:
        """See `RemoteCommand`."""
        for start in range(0, len(data), _LARGEST_INPUT):
            await self._send(_STDIN, data[start : start + _LARGEST_INPUT])

    async def end_input(self) -> None:
        """See `RemoteCommand`."""
        if self._socket.protocol != _V5:
            raise TransportError(
                f"{self._name}: the API server cannot tell a command that its input ends: it is older than "
                "Kubernetes 1.30"
            )
        await self._send(_CLOSE, bytes([_STDIN]))

    async def resize(self, columns: int, rows: int) -> None:
        """See `RemoteCommand`."""
        await self._send(_RESIZE, msgspec.json.encode({"Width": columns, "Height": rows}))

    async def keep_alive(self) -> None:
        """See `RemoteCommand`."""
        while not self._socket.closed:
            await self._clock.sleep(_PING_SECONDS)
            try:
                await self._socket.ping()
            except ConnectionError:
                return

    async def _send(self, channel: int, data: bytes) -> None:
        try:
            await self._socket.send_bytes(bytes([channel]) + data)
        except ConnectionError:  # it ended, and whoever reads the output learns why
            return


def _exit_code_of(text: bytes, name: str) -> int:
    """The exit code in the Status at the end of a command.

    Raises:
        ApiError: it has none, for the command has not run.
    """
    try:
        status = _status.decode(text)
    except msgspec.DecodeError as error:
        raise TransportError(f"{name}: the server ended the command with what is no Status: {error}") from error
    if status.get("status") == "Success":
        return 0
    code = status.get("code")
    failure = error_from_status(code if isinstance(code, int) else 500, status)
    if failure.status_reason == "NonZeroExitCode":
        for cause in failure.causes:
            message = str(cause.get("message"))
            if cause.get("reason") == "ExitCode" and message.isdecimal():
                return int(message)
    raise failure
