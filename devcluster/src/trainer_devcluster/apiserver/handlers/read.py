"""Get and list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import msgspec
from aiohttp import web

from trainer_devcluster.apiserver.definitions.resource_definition import as_requested
from trainer_devcluster.apiserver.handlers.call import answer, with_warnings
from trainer_devcluster.apiserver.handlers.watch import watch
from trainer_devcluster.apiserver.reads import reading
from trainer_devcluster.apiserver.reads.presentation import Presenter, include_object
from trainer_devcluster.apiserver.wire.negotiation import JSON, answer_format
from trainer_devcluster.apiserver.wire.params import list_parameters

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from trainer.kube.api_semantics.paging import Page
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.handlers.call import Call

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
