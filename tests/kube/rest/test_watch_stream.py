"""Framing of watches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.kube.objects import pod
from trainer.kube.client import EventType, WatchEvent
from trainer.kube.errors import GoneError, TransportError
from trainer.kube.rest.watch_stream import read_events

TEXT = 'braces }}\n, quotes "object":{ and \\ backslashes, line\u2028separators \r'


async def chunked(body: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    start = 0
    for cut in sorted({cut % (len(body) + 1) for cut in cuts}):
        yield body[start:cut]
        start = cut
    yield body[start:]


async def read(body: bytes, cuts: list[int] | None = None) -> list[WatchEvent]:
    return [event async for event in read_events(chunked(body, cuts or []), "/api/v1/pods")]


def line(kind: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"


@given(cuts=st.lists(st.integers(min_value=0), max_size=12), texts=st.lists(st.text(max_size=20), max_size=6))
async def test_events_come_out_however_the_body_is_cut(cuts: list[int], texts: list[str]) -> None:
    """Chunks end anywhere, within a character too; each line is one event."""
    kinds = [EventType.ADDED, EventType.MODIFIED, EventType.DELETED, EventType.BOOKMARK]
    objects = [pod(f"p{number}", labels={"text": text + TEXT}) for number, text in enumerate(texts)]
    body = b"".join(line(kinds[number % 4], obj) for number, obj in enumerate(objects))
    events = await read(body, cuts)
    assert [event.object for event in events] == objects
    assert [event.type for event in events] == [kinds[number % 4] for number in range(len(objects))]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{ "object": {"kind": "Pod"}, "type": "ADDED" }\n', id="other-order-and-spaces"),
        pytest.param(b'{"type":"ADDED","object":{"kind":"Pod"}}', id="no-line-end"),
        pytest.param(b'{"type":"ADDED","object":{"kind":"Pod"}}\r\n', id="carriage-return"),
        pytest.param(b'\n\n{"type":"ADDED","object":{"kind":"Pod"}}\n\n', id="empty-lines"),
    ],
)
async def test_unusual_lines_are_read(body: bytes) -> None:
    """What is valid JSON is understood, even if no API server writes it so."""
    [event] = await read(body)
    assert (event.type, event.object) == (EventType.ADDED, {"kind": "Pod"})


@pytest.mark.parametrize("body", [line("ADDED", pod("a"))[:-9], b"<html>\n", b"[]\n"], ids=["cut-off", "html", "array"])
async def test_what_is_no_event_breaks_the_watch(body: bytes) -> None:
    """A line that is cut off or foreign is an error, so that the reader goes on from the last event before it."""
    with pytest.raises(TransportError, match="cut off, or not from a Kubernetes API server"):
        await read(line("ADDED", pod("b")) + body)


async def test_error_events_are_raised() -> None:
    """A Status in the stream is the typed error."""
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    with pytest.raises(GoneError, match="too old"):
        await read(line("ERROR", status))


@pytest.mark.parametrize("status", [None, [], "no"], ids=["null", "array", "text"])
async def test_errors_that_are_no_status_break_the_watch(status: Any) -> None:
    """Whatever stands between us and the server may answer anything."""
    with pytest.raises(TransportError, match="an error that is no Status"):
        await read(line("ERROR", status))


async def test_unknown_types_are_left_out() -> None:
    """A type that a later server may add is logged and does no harm."""
    with capture_logs() as logs:
        events = await read(line("PAUSED", {}) + line("ADDED", pod("a")))
    assert len(events) == 1
    assert logs[0]["event"] == "skipped watch event of unknown type"
