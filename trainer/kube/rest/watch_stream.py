"""The events of a watch, from the chunks of its body.

A watch sends one JSON object a line: `{"type":"ADDED","object":{...}}`. To decode the envelope means to scan the whole
object, which is scanned again when its metadata is decoded. Lines that look as every API server writes them are
therefore cut; whether the object is sound shows when it is decoded.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
import structlog

from trainer.kube.client import EventType, WatchEvent
from trainer.kube.errors import TransportError, error_from_status

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

log = structlog.get_logger(__name__)


class _Envelope(msgspec.Struct):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


_envelope = msgspec.json.Decoder(_Envelope)
_status = msgspec.json.Decoder(dict[str, Any])
_TYPES = {str(event_type): event_type for event_type in EventType}
_PREFIXES = {
    event_type: b'{"type":"%b","object":{' % str(event_type).encode()
    for event_type in (EventType.MODIFIED, EventType.ADDED, EventType.DELETED)
}


async def read_events(chunks: AsyncIterator[bytes], path: str) -> AsyncGenerator[WatchEvent, None]:
    """The events, each as soon as its line is complete; events of unknown types are logged and left out.

    Args:
        chunks: the body, cut anywhere.
        path: names the watch in errors.

    Raises:
        ApiError: what an ERROR event says.
        TransportError: a line that is no event, such as one that a broken connection has cut off.
    """
    async with aclosing(_lines(chunks)) as lines:
        async for line in lines:
            event = _cut(line) or _decode(line, path)
            if event is not None:
                yield event


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Lines of any length with their ends; the last one may lack it."""
    pending: list[bytes] = []
    async for chunk in chunks:
        for part in chunk.splitlines(keepends=True) if b"\r" not in chunk else _split(chunk):
            if not part.endswith(b"\n"):
                pending.append(part)
            elif pending:
                pending.append(part)
                yield b"".join(pending)
                pending.clear()
            else:
                yield part
    if pending:
        yield b"".join(pending)


def _split(chunk: bytes) -> list[bytes]:
    """Lines that end in a line feed alone, since a carriage return is white space in JSON."""
    *lines, rest = chunk.split(b"\n")
    return [line + b"\n" for line in lines] + ([rest] if rest else [])


def _cut(line: bytes) -> WatchEvent | None:
    if line.endswith(b"}}\n"):
        for event_type, prefix in _PREFIXES.items():
            if line.startswith(prefix):
                return WatchEvent(event_type, line[len(prefix) - 1 : -2])
    return None


def _decode(line: bytes, path: str) -> WatchEvent | None:
    if not line.strip():
        return None
    try:
        event = _envelope.decode(line)
    except msgspec.DecodeError as error:
        _refuse(error, path)
    if event.type == "ERROR":
        status = _status.decode(event.object)
        raise error_from_status(status.get("code") or 500, status)
    event_type = _TYPES.get(event.type)
    if event_type is None:
        log.warning("skipped watch event of unknown type", type=event.type, path=path)
        return None
    return WatchEvent(event_type, event.object)


def _refuse(error: msgspec.DecodeError, path: str) -> NoReturn:
    message = f"the answer to {path} is cut off, or not from a Kubernetes API server (check the URL): {error}"
    raise TransportError(message) from error
