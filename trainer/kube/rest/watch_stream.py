"""The events of a watch, from the chunks of its body.

A watch sends one JSON object a line: `{"type":"ADDED","object":{...}}`. To decode the envelope means to scan the whole
object, which is scanned again when its metadata is decoded. Lines that look as every API server writes them are
therefore cut; whether the object is sound shows when it is decoded.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, NoReturn

import msgspec

from trainer.kube.client import EventType, WatchEvent
from trainer.kube.errors import TransportError, error_from_status
from trainer.kube.json_text import decode_outer
from trainer.kube.logger import get_logger

log = get_logger(__name__)


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

    `path` names the watch in errors.

    Raises:
        ApiError: what an ERROR event says.
        TransportError: a line that is no event, such as one that a broken connection has cut off.
    """
    # Parts of a line whose end has not come.
    pending: list[bytes] = []
    async for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            if pending:
                line = b"".join((*pending, chunk[:end]))
                pending.clear()
                event = _read(line, 0, len(line), path)
            else:
                event = _read(chunk, start, end, path)
            start = end + 1
            if event is not None:
                yield event
        if start < len(chunk):
            pending.append(chunk[start:])
    event = _decode(b"".join(pending), path)
    if event is not None:
        yield event


def _read(body: bytes, start: int, end: int, path: str) -> WatchEvent | None:
    """The event on the line between these positions of a body."""
    if body.endswith(b"}}", start, end):
        for event_type, prefix in _PREFIXES.items():
            if body.startswith(prefix, start):
                # No copy: it would outlive the one that the cache keeps, and leave a hole between that and the next.
                return WatchEvent(event_type, memoryview(body)[start + len(prefix) - 1 : end - 1])
    return _decode(body[start:end], path)


def _decode(line: bytes, path: str) -> WatchEvent | None:
    if not line.strip():
        return None
    try:
        event = decode_outer(_envelope, line)
    except msgspec.DecodeError as error:
        _refuse(error, path)
    if event.type == "ERROR":
        _raise_status(event.object, path)
    event_type = _TYPES.get(event.type)
    if event_type is None:
        log.warning("skipped watch event of unknown type", type=event.type, path=path)
        return None
    return WatchEvent(event_type, event.object)


def _raise_status(raw: msgspec.Raw, path: str) -> NoReturn:
    try:
        status = _status.decode(raw)
    except msgspec.DecodeError as error:
        raise TransportError(f"the answer to {path} ends with an error that is no Status: {error}") from error
    code = status.get("code")
    raise error_from_status(code if isinstance(code, int) else 500, status)


def _refuse(error: msgspec.DecodeError, path: str) -> NoReturn:
    message = f"the answer to {path} is cut off, or not from a Kubernetes API server (check the URL): {error}"
    raise TransportError(message) from error
