"""Delete and deletecollection."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio.lowlevel

from trainer.kube.errors import ApiError
from trainer.kube.objects import name_of
from trainer_devcluster.apiserver.definitions.resource_definition import as_requested
from trainer_devcluster.apiserver.handlers.call import answer
from trainer_devcluster.apiserver.handlers.read import page_answer, presenter
from trainer_devcluster.apiserver.objects.decoding import read_as
from trainer_devcluster.apiserver.reads import reading
from trainer_devcluster.apiserver.wire.params import delete_parameters, list_parameters
from trainer_devcluster.apiserver.writes.deletion import DeletionRequest

if TYPE_CHECKING:
    from aiohttp import web

    from trainer_devcluster.apiserver.handlers.call import Call
    from trainer_devcluster.apiserver.wire.params import DeleteParameters

_SLICE_OBJECTS = 100
"""After how many deletions other requests get their turn."""


async def delete(call: Call) -> web.StreamResponse:
    """DELETE of one object."""
    parameters = await _parameters(call)
    shown = presenter(call)
    request = DeletionRequest(parameters, call.user, call.warnings, call.target.name)
    deletion = await call.deleter.delete(call.target, request)
    call.warnings.add(*deletion.warnings)
    gone = deletion.answer.get("kind") == "Status" and deletion.answer.get("apiVersion") == "v1"
    return answer(
        deletion.answer if gone else shown.single(as_requested(call.target.definition, deletion.answer)),
        warnings=call.warnings.texts,
    )


async def delete_collection(call: Call) -> web.StreamResponse:
    """DELETE of all selected objects of a collection; answers with what was selected."""
    parameters = await _parameters(call)
    shown = presenter(call)
    page = await reading.list_page(call.backend, call.target, list_parameters(call.query))
    request = DeletionRequest(parameters, call.user, call.warnings)
    for count, obj in enumerate(page.items, 1):
        if count % _SLICE_OBJECTS == 0:
            await anyio.lowlevel.checkpoint()
        try:
            await call.deleter.delete(replace(call.target, verb="delete", name=name_of(obj)), request)
        except ApiError as error:
            if error.code != 404:
                raise
    return await page_answer(shown, page, warnings=call.warnings.texts)


async def _parameters(call: Call) -> DeleteParameters:
    if not await call.content():
        return delete_parameters(call.query, None)
    body, _ = await call.decoded()
    return delete_parameters(call.query, read_as("v1", "DeleteOptions", body))
