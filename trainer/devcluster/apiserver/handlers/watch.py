"""Watch."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from trainer.devcluster.apiserver.negotiation import JSON
from trainer.devcluster.apiserver.watching import Watch

if TYPE_CHECKING:
    from trainer.devcluster.apiserver.handlers.call import Call
    from trainer.devcluster.apiserver.params import ListParameters
    from trainer.devcluster.apiserver.presentation import Presenter


async def watch(call: Call, parameters: ListParameters, presenter: Presenter) -> web.StreamResponse:
    """Stream changes, one JSON document per line."""
    stream = Watch(call.backend, call.target, parameters)
    await stream.start()
    response = web.StreamResponse(headers={"Content-Type": JSON})
    await response.prepare(call.request)
    first = True
    async with aclosing(stream.events()) as batches:
        async for batch in batches:
            lines = []
            for kind, obj in batch:
                lines.append(msgspec.json.encode(presenter.event(kind, obj, first=first)) + b"\n")
                first = False
            if lines:
                await response.write(b"".join(lines))
    await response.write_eof()
    return response
