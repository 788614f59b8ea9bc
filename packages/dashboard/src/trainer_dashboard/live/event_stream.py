"""Server-sent events (WHATWG HTML, section 9.2): what a page is pushed while it is open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import msgspec
from aiohttp import web

from trainer.kube.cache.failures import explain
from trainer.kube.cache.informer import SILENCE, Informer
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import KubeError, causes_of
from trainer.kube.logger import get_logger
from trainer_dashboard.access.parties import Stream
from trainer_dashboard.access.viewer import Viewer
from trainer_dashboard.serving.answers import HEADERS

log = get_logger(__name__)

_HEARTBEAT = 15.0
"""Seconds between two comments, or events `heard`, by which a page notices that nothing comes any more."""
STALLED: Final = 60.0
"""Seconds after which a stream that nobody reads ends, so that nobody holds memory by not reading."""
_CHECK = 2.0
"""Seconds between two looks at an informer, which notifies nobody of its problems."""
SIGN_IN_CHECK = 15.0
"""Seconds between two looks whether the viewer is still signed in."""


class EventStream:
    """One open stream; events are sent in the order of the calls, and a slow reader makes its senders wait."""

    def __init__(self, response: web.StreamResponse, clock: Clock, slot: Stream) -> None:
        self.response = response
        self.slot = slot
        self._clock = clock
        self._writing = anyio.Lock()

    async def send(self, event: str, content: object) -> None:
        """Send an event with its content as JSON, which is encoded when its turn has come."""
        async with self._writing:
            await self.turn()
            await self._write(b"event: %b\ndata: %b\n\n" % (event.encode(), msgspec.json.encode(content)))

    async def send_each(self, event: str, contents: Iterator[object]) -> None:
        """Send an event for each of these contents, which are made one after the other."""
        await self.turn()
        for content in contents:
            await self.send(event, content)
            await self.turn()

    async def turn(self) -> None:
        """Wait for the turn to make what is sent, see `Party.turn`."""
        await self.slot.party.turn()

    async def beat(self, clock: Clock) -> None:
        """Send comments until cancelled."""
        while True:
            await clock.sleep(_HEARTBEAT)
            async with self._writing:
                await self._write(b":\n\n")

    async def report(self, informer: Informer, clock: Clock) -> None:
        """Send how an informer does, until cancelled, with the seconds since the API server was heard.

        That is `problem` when its problem changes, with an empty text when it is over; and while it has none `heard`,
        at once and then again and again. Nothing is sent before something is known.
        """
        sent, due = "", clock.monotonic()
        while True:
            text, age = _problem(informer), round(informer.event_age, 1)
            if text != sent:
                await self.send("problem", {"text": text, "seconds": age})
                sent = text
            elif not text and informer.has_synced and clock.monotonic() >= due:
                await self.send("heard", {"seconds": age})
                due = clock.monotonic() + _HEARTBEAT
            await clock.sleep(_CHECK)

    async def wait_for_sign_out(self, viewer: Viewer, clock: Clock) -> None:
        """Return when the viewer is not signed in any more."""
        while await viewer.is_signed_in():
            await clock.sleep(SIGN_IN_CHECK)

    async def _write(self, block: bytes) -> None:
        async with move_on_after(self._clock, STALLED) as scope:
            await self.slot.write(self.response, block)
        if scope.cancelled_caught:
            # What the transport still has of it would be held as long as the reader likes.
            self.slot.end()
            raise ConnectionError(f"nothing was read for {STALLED:g} s")


@asynccontextmanager
async def event_stream(
    request: web.BaseRequest, clock: Clock, viewer: Viewer, slot: Stream, informer: Informer | None = None
) -> AsyncIterator[EventStream]:
    """Answer a request with a stream, which ends with the body, or when its reader has gone or is signed out.

    It also ends where the API server does not say what the viewer may see: the page opens it again.
    With an informer, its problem is sent as events `problem`, also while the body waits for it to sync, and `heard`
    says when the API server was heard: that the server of the page is alive says nothing about what it shows.
    """
    response = web.StreamResponse(headers=HEADERS)
    response.content_type = "text/event-stream"
    response.charset = "utf-8"
    await response.prepare(request)
    stream = EventStream(response, clock, slot)

    async def end_with_sign_in(scope: anyio.CancelScope) -> None:
        await stream.wait_for_sign_out(viewer, clock)
        scope.cancel()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.beat, clock)
            tasks.start_soon(end_with_sign_in, tasks.cancel_scope)
            if informer is not None:
                tasks.start_soon(stream.report, informer, clock)
            yield stream
            tasks.cancel_scope.cancel()
    except* ConnectionError:  # nobody reads it any more
        pass
    except* KubeError as group:
        log.warning("ended a stream of the dashboard", error=str(causes_of(group)[0]))


def _problem(informer: Informer) -> str:
    """Why what an informer has is not that of now; the text is the same as long as the problem is."""
    if informer.last_error is not None:
        return explain(informer.resource, informer.last_error)
    is_silent = informer.has_synced and informer.event_age > SILENCE
    return "nothing was heard of the API server for minutes" if is_silent else ""


class Changes:
    """Wakes the sender of a stream: what changes while it sends, or pauses, it sees at once the next time."""

    def __init__(self) -> None:
        self._changed = anyio.Event()
        self._changed.set()

    def notify(self) -> None:
        """Something has changed."""
        self._changed.set()

    async def wait(self) -> None:
        """Wait for a change since the last call; there is one before the first."""
        await self._changed.wait()
        self._changed = anyio.Event()
