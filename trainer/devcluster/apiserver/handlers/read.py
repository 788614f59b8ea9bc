"""Get and list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from trainer.devcluster.apiserver import reading
from trainer.devcluster.apiserver.handlers.call import answer
from trainer.devcluster.apiserver.handlers.watch import watch
from trainer.devcluster.apiserver.negotiation import answer_format
from trainer.devcluster.apiserver.params import list_parameters
from trainer.devcluster.apiserver.presentation import Presenter, include_object

if TYPE_CHECKING:
    from aiohttp import web

    from trainer.devcluster.apiserver.handlers.call import Call

_THREAD_ITEMS = 500
"""Lists from this length on are written beside the event loop."""


def presenter(call: Call) -> Presenter:
    """The presenter for the request's Accept header.

    Raises:
        StatusError: 406, we cannot write what is accepted; 400, a bad `includeObject`.
    """
    wanted = answer_format(call.request.headers.get("Accept", ""))
    shown = include_object(call.query.get("includeObject", ""))
    return Presenter(call.target.definition, wanted, shown, call.backend.clock)


async def get(call: Call) -> web.StreamResponse:
    """GET of one object, its status included."""
    return answer(presenter(call).single(reading.get(call.backend, call.target)))


async def list_or_watch(call: Call) -> web.StreamResponse:
    """GET of a collection."""
    parameters = list_parameters(call.query)
    shown = presenter(call)
    if parameters.watch:
        return await watch(call, parameters, shown)
    page = await reading.list_page(call.backend, call.target, parameters)
    if len(page.items) < _THREAD_ITEMS:
        return answer(shown.page(page))
    return await anyio.to_thread.run_sync(lambda: answer(shown.page(page)))
