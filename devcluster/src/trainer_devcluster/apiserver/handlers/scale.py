"""The scale subresource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.api_semantics import statuses
from trainer.kube.api_semantics.json_values import writable_copy
from trainer_devcluster.apiserver.definitions.resource_definition import as_requested
from trainer_devcluster.apiserver.handlers.call import answer
from trainer_devcluster.apiserver.handlers.write import JSON_PATCH, MERGE_PATCH, patch_type, patching
from trainer_devcluster.apiserver.reads import reading
from trainer_devcluster.apiserver.wire.body import decode_json
from trainer_devcluster.apiserver.writes.scale import read_scale, scale_of, scale_to_change, scaled

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.resource_definition import ScalePaths
    from trainer_devcluster.apiserver.handlers.call import Call


async def get(call: Call) -> web.StreamResponse:
    """GET of the Scale."""
    obj = as_requested(call.target.definition, reading.get(call.backend, call.target))
    return answer(read_scale(obj, _paths(call)), warnings=call.warnings.texts)


async def update(call: Call) -> web.StreamResponse:
    """PUT of a Scale."""
    body, _ = await call.decoded()
    return await _write(call, lambda _: writable_copy(body))


async def patch(call: Call) -> web.StreamResponse:
    """PATCH of the Scale, by JSON patch or merge patch."""
    content_type = patch_type(call)
    if content_type not in {JSON_PATCH, MERGE_PATCH}:
        raise statuses.unsupported_media_type([JSON_PATCH, MERGE_PATCH])
    body = await call.read(decode_json)
    return await _write(call, patching(content_type, body.value, None))


async def _write(call: Call, change: Callable[[Object], Object]) -> web.Response:
    paths = _paths(call)
    write = call.write()
    stored = await call.writer.update(
        write, lambda obj: scaled(writable_copy(obj), change(scale_to_change(obj, paths)), paths)
    )
    return answer(scale_of(stored, paths), warnings=write.warnings.texts)


def _paths(call: Call) -> ScalePaths:
    paths = call.target.definition.scale
    if paths is None:
        raise statuses.no_such_resource()
    return paths
