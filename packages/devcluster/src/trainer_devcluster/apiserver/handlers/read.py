"""Get, list and watch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing

import anyio
import anyio.lowlevel
import msgspec
import structlog
from aiohttp import web

from trainer.kube.client import EventType
from trainer.kube.clock import move_on_after
from trainer.kube.objects import Object, resource_version_of
from trainer_devcluster.apiserver.definitions.resource_definition import as_requested
from trainer_devcluster.apiserver.handlers.call import Call, answer, with_warnings
from trainer_devcluster.apiserver.reads import reading
from trainer_devcluster.apiserver.reads.reading import Presenter, include_object
from trainer_devcluster.apiserver.reads.watching import ServedWatch
from trainer_devcluster.apiserver.wire.event_lines import EventLines
from trainer_devcluster.apiserver.wire.headers import JSON, Shape, answer_format
from trainer_devcluster.apiserver.wire.params import ListParameters, list_parameters
from trainer_kube_testing.api_semantics.paging import Page

log = structlog.get_logger(__name__)

_PIECE_BYTES = 64 * 1024
"""How much is written at once; roughly what a connection holds back for a client before writing waits."""
_UNBUFFERED_BYTES = 32 * 1024
"""What a connection on which nothing waits takes without waiting, so that no timer is needed."""
_SHARED = frozenset({EventType.ADDED, EventType.MODIFIED, EventType.DELETED})
SLOW_SECONDS = 30.0
"""For how long a client may take nothing of what is sent to it. It is cut off then: what waits for it in buffers, and
the objects in there, would stay for as long as the watch lasts. Clients watch again from the last event they have."""


async def watch(call: Call, parameters: ListParameters, presenter: Presenter) -> web.StreamResponse:
    """Stream changes, one JSON document per line."""
    stream = ServedWatch(call.backend, call.target, parameters)
    await stream.start()
    response = web.StreamResponse(headers={"Content-Type": JSON})
    with_warnings(response, call.warnings.texts)
    await call.begin(response)
    media_type = (call.backend.registry.version, presenter.media_type)
    lines = Lines(presenter, call.backend.media_types.lines(media_type))
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.keep_time)
        try:
            async with aclosing(stream.events()) as batches:
                await _send(call, response, lines, batches)
        except Exception as error:
            # Raised again outside, where the task group does not wrap it: mostly a client that is gone.
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    await response.write_eof()
    return response


async def _send(
    call: Call, response: web.StreamResponse, lines: Lines, batches: AsyncIterator[list[tuple[str, Object]]]
) -> None:
    """Send all events, as long as the client takes them."""
    transport = call.request.transport
    async for batch in batches:
        for number, piece in enumerate(lines.pieces(batch)):
            if number:
                # Everything there was is many events, and writing waits only when the client is slow.
                await anyio.lowlevel.checkpoint()
            if transport is None or transport.is_closing():
                return
            if len(piece) < _UNBUFFERED_BYTES and not transport.get_write_buffer_size():
                await response.write(piece)
                continue
            async with move_on_after(call.backend.clock, SLOW_SECONDS) as scope:
                await response.write(piece)
            if scope.cancelled_caught:
                log.info("cut off a watcher that does not read", path=call.request.path, user_agent=call.user_agent)
                transport.abort()
                return


class Lines:
    """Writes the events of one watch."""

    def __init__(self, presenter: Presenter, shared: EventLines) -> None:
        self._presenter = presenter
        self._shared = shared
        self._first = True

    def pieces(self, events: list[tuple[str, Object]]) -> Iterator[bytes]:
        """The lines of events, several together."""
        piece: list[bytes] = []
        size = 0
        for kind, obj in events:
            piece.append(self._line(kind, obj))
            size += len(piece[-1])
            if size >= _PIECE_BYTES:
                yield b"".join(piece)
                piece, size = [], 0
        if piece:
            yield b"".join(piece)

    def _line(self, kind: str, obj: Object) -> bytes:
        first, self._first = self._first, False
        if kind not in _SHARED or (first and self._presenter.wanted.shape is Shape.TABLE):
            return self._encoded(kind, obj, first=first)
        return self._shared.line(kind, resource_version_of(obj), lambda: self._encoded(kind, obj, first=False))

    def _encoded(self, kind: str, obj: Object, *, first: bool) -> bytes:
        return msgspec.json.encode(self._presenter.event(kind, obj, first=first)) + b"\n"


_THREAD_ITEMS = 500
"""Lists from this length on are written beside the event loop."""
_SLICE_BYTES = 256 * 1024


def presenter(call: Call) -> Presenter:
    """The presenter for the request's Accept header.

    Raises:
        ApiError: 406, we cannot write what is accepted; 400, a bad `includeObject`.
    """
    wanted = answer_format(call.request.headers.get("Accept", ""))
    shown = include_object(call.query.get("includeObject", ""))
    return Presenter(call.target.definition, wanted, shown, call.backend.clock)


async def get(call: Call) -> web.StreamResponse:
    """GET of one object, its status included."""
    shown = presenter(call)
    obj = as_requested(call.target.definition, reading.get(call.backend, call.target))
    return answer(shown.single(obj), warnings=call.warnings.texts)


async def list_or_watch(call: Call) -> web.StreamResponse:
    """GET of a collection."""
    parameters = list_parameters(call.query, streams_lists=call.backend.feature_gates.watch_list)
    shown = presenter(call)
    if parameters.watch:
        return await watch(call, parameters, shown)
    page = await reading.list_page(call.backend, call.target, parameters)
    return await page_answer(shown, page, warnings=call.warnings.texts)


async def page_answer(shown: Presenter, page: Page[Object], *, warnings: Sequence[str] = ()) -> web.StreamResponse:
    """The answer with one page of a list; a long one is made and sent without holding up other requests."""
    if len(page.items) < _THREAD_ITEMS:
        return answer(shown.page(page), warnings=warnings)
    content = await anyio.to_thread.run_sync(lambda: msgspec.json.encode(shown.page(page)))
    return with_warnings(web.Response(body=_slices(content), content_type=JSON), warnings)


async def _slices(content: bytes) -> AsyncIterator[bytes]:
    # What is written is encrypted on the event loop, at once.
    for start in range(0, len(content), _SLICE_BYTES):
        yield content[start : start + _SLICE_BYTES]
        await anyio.lowlevel.checkpoint()
