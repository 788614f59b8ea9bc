"""Watch."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio.lowlevel
import msgspec
from aiohttp import web

from trainer.devcluster.apiserver.negotiation import JSON
from trainer.devcluster.apiserver.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.devcluster.apiserver.handlers.call import Call
    from trainer.devcluster.apiserver.params import ListParameters
    from trainer.devcluster.apiserver.presentation import Presenter
    from trainer.kube.objects import Object

_SLICE_EVENTS = 100
"""How many events are written at once."""


async def watch(call: Call, parameters: ListParameters, presenter: Presenter) -> web.StreamResponse:
    """Stream changes, one JSON document per line."""
    stream = Watch(call.backend, call.target, parameters)
    await stream.start()
    response = web.StreamResponse(headers={"Content-Type": JSON})
    await response.prepare(call.request)
    first = True
    async with aclosing(stream.events()) as batches:
        async for batch in batches:
            for start in range(0, len(batch), _SLICE_EVENTS):
                events = batch[start : start + _SLICE_EVENTS]
                await response.write(b"".join(_lines(presenter, events, first=first)))
                # Everything there was is many events, and writing waits only when the client is slow.
                await anyio.lowlevel.checkpoint()
                first = False
    await response.write_eof()
    return response


def _lines(presenter: Presenter, events: list[tuple[str, Object]], *, first: bool) -> Iterator[bytes]:
    for kind, obj in events:
        yield msgspec.json.encode(presenter.event(kind, obj, first=first)) + b"\n"
        first = False
