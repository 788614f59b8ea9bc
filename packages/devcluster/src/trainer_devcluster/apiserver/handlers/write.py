"""Create, update, patch and delete, and the scale subresource."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio.lowlevel
from aiohttp import web

from trainer.kube.errors import ApiError
from trainer.kube.field_errors import FieldError
from trainer.kube.merge_patch import writable_copy
from trainer.kube.objects import Object, name_of
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition, ScalePaths, as_requested
from trainer_devcluster.apiserver.handlers.call import Call, answer
from trainer_devcluster.apiserver.handlers.read import page_answer, presenter
from trainer_devcluster.apiserver.objects.decoding import read_as
from trainer_devcluster.apiserver.objects.value_types import UNTYPED
from trainer_devcluster.apiserver.reads import reading
from trainer_devcluster.apiserver.wire.body import decode_json, decode_yaml
from trainer_devcluster.apiserver.wire.params import META_GROUP, DeleteParameters, delete_parameters, list_parameters
from trainer_devcluster.apiserver.writes.deletion import DeletionRequest
from trainer_devcluster.apiserver.writes.scale import read_scale, scale_of, scale_to_change, scaled
from trainer_devcluster.apiserver.writes.write import Write
from trainer_kube_testing.api_semantics import patches, statuses
from trainer_kube_testing.api_semantics.json_patch import json_patch
from trainer_kube_testing.api_semantics.patches import PatchError

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


async def create(call: Call) -> web.StreamResponse:
    """POST of a new object."""
    write = call.write()
    body, write.duplicates = await call.decoded()
    shown = presenter(call)
    stored = await call.writer.create(write, write.accept(body))
    return answer(shown.single(stored), 201, warnings=write.warnings.texts)


async def update(call: Call) -> web.StreamResponse:
    """PUT of a whole object, or of its status."""
    write = call.write()
    body, write.duplicates = await call.decoded()
    shown = presenter(call)
    stored = await call.writer.update(write, lambda _: writable_copy(body))
    return answer(shown.single(stored), warnings=write.warnings.texts)


async def patch(call: Call) -> web.StreamResponse:
    """PATCH of an object or its status, in any of the four formats."""
    write = call.write()
    content_type = patch_type(call)
    shown = presenter(call)
    if content_type == APPLY_PATCH:
        if not write.parameters.explicit_manager:
            message = "Required value: is required for apply patch"
            raise _invalid_options("FieldValueRequired", message, "fieldManager")
        applied = _applied(write, await call.read(decode_yaml))
        stored, created = await call.writer.apply(write, applied)
        return answer(shown.single(stored), 201 if created else 200, warnings=write.warnings.texts)
    if write.parameters.force is not None:
        raise _invalid_options("FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force")
    body = await call.read(decode_json)
    write.duplicates = body.duplicates
    stored = await call.writer.update(write, patching(content_type, body.value, call.target.definition))
    return answer(shown.single(stored), warnings=write.warnings.texts)


def patch_type(call: Call) -> str:
    """The media type of a patch.

    Raises:
        ApiError: 415, the resource cannot be patched that way.
    """
    accepted = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]
    if not call.target.definition.is_custom:
        accepted.insert(2, STRATEGIC_PATCH)
    content_type = call.request.headers.get("Content-Type", "").split(";", 1)[0].strip().lower()
    if content_type not in accepted:
        raise statuses.unsupported_media_type(accepted)
    return content_type


def patching(content_type: str, patch_body: Any, definition: ResourceDefinition | None) -> Callable[[Object], Object]:
    """A function that applies a patch to an object; without a definition lists are merged as one value.

    The function raises ApiError: 400 for a malformed patch, 413 for one that is too large, 422 for one that does not
    fit the object.
    """

    def apply(obj: Object) -> Object:
        try:
            if content_type == JSON_PATCH:
                return json_patch(obj, patch_body)
            if content_type == MERGE_PATCH:
                return patches.merge_patch(obj, patch_body)
            typing = definition.typing if definition is not None else UNTYPED
            return patches.strategic_merge_patch(obj, patch_body, typing)
        except PatchError as error:
            raise error.answer from error

    return apply


def _applied(write: Write, body: Any) -> Object:
    if not isinstance(body, dict) or not isinstance(body.get("metadata") or {}, dict):
        raise statuses.bad_request(
            "error decoding YAML: an apply patch must be an object with apiVersion, kind and metadata"
        )
    resource = write.target.definition.resource
    version, kind = body.get("apiVersion"), body.get("kind")
    if version != resource.api_version:
        raise statuses.bad_request(
            f"Incorrect version specified in apply patch. Specified patch version: {version}, expected: "
            f"{resource.api_version}"
        )
    if kind != resource.kind:
        raise statuses.bad_request(f"Incorrect kind specified in apply patch: {kind}, expected: {resource.kind}")
    metadata = body["metadata"] = body.get("metadata") or {}
    if metadata.get("managedFields") is not None:
        raise statuses.bad_request("metadata.managedFields must be nil")
    metadata.setdefault("name", write.target.name)
    if write.target.namespace:
        metadata.setdefault("namespace", write.target.namespace)
    return body


def _invalid_options(reason: str, message: str, field: str) -> ApiError:
    return statuses.invalid("PatchOptions", META_GROUP, "", [FieldError(field, message, reason)])


async def get_scale(call: Call) -> web.StreamResponse:
    """GET of the Scale."""
    obj = as_requested(call.target.definition, reading.get(call.backend, call.target))
    return answer(read_scale(obj, _scale_paths(call)), warnings=call.warnings.texts)


async def update_scale(call: Call) -> web.StreamResponse:
    """PUT of a Scale."""
    body, _ = await call.decoded()
    return await _write_scale(call, lambda _: writable_copy(body))


async def patch_scale(call: Call) -> web.StreamResponse:
    """PATCH of the Scale, by JSON patch or merge patch."""
    content_type = patch_type(call)
    if content_type not in {JSON_PATCH, MERGE_PATCH}:
        raise statuses.unsupported_media_type([JSON_PATCH, MERGE_PATCH])
    body = await call.read(decode_json)
    return await _write_scale(call, patching(content_type, body.value, None))


async def _write_scale(call: Call, change: Callable[[Object], Object]) -> web.Response:
    paths = _scale_paths(call)
    write = call.write()
    stored = await call.writer.update(
        write, lambda obj: scaled(writable_copy(obj), change(scale_to_change(obj, paths)), paths)
    )
    return answer(scale_of(stored, paths), warnings=write.warnings.texts)


def _scale_paths(call: Call) -> ScalePaths:
    paths = call.target.definition.scale
    if paths is None:
        raise statuses.no_such_resource()
    return paths


_SLICE_OBJECTS = 100
"""After how many deletions other requests get their turn."""


async def delete(call: Call) -> web.StreamResponse:
    """DELETE of one object."""
    parameters = await _delete_parameters(call)
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
    parameters = await _delete_parameters(call)
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


async def _delete_parameters(call: Call) -> DeleteParameters:
    if not await call.content():
        return delete_parameters(call.query, None)
    body, _ = await call.decoded()
    return delete_parameters(call.query, read_as("v1", "DeleteOptions", body))
