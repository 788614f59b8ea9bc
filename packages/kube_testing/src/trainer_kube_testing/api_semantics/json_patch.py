"""JSON patches (RFC 6902)."""

from __future__ import annotations

from typing import Final

import jsonpatch
import jsonpointer
import msgspec

from trainer.kube.merge_patch import writable_copy
from trainer.kube.objects import Object
from trainer_kube_testing.api_semantics import statuses
from trainer_kube_testing.api_semantics.patches import PatchError, failed, json_type, malformed

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
"""Limit of what all copies of one JSON patch may add: each can double the object, so thirty of them would fill any
memory."""


def json_patch(document: Object, operations: object) -> Object:
    """Apply a JSON patch.

    Raises:
        PatchError: the operations are malformed or too many, copy too much, or one of them fails on this document.
    """
    if not isinstance(operations, list):
        raise malformed(f"error decoding patch: a JSON patch must be an array, not {json_type(operations)}")
    if len(operations) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise PatchError(message, statuses.request_entity_too_large(message))
    try:
        steps = [jsonpatch.JsonPatch([operation]) for operation in writable_copy(operations)]
    except (jsonpatch.InvalidJsonPatch, jsonpointer.JsonPointerException, TypeError, AttributeError) as error:
        raise malformed(f"error decoding patch: {error}") from error
    try:
        patched, copied = writable_copy(document), 0
        for step, operation in zip(steps, operations, strict=True):
            if operation["op"] == "copy":
                copied = _copied(copied, patched, operation["from"])
            patched = step.apply(patched, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, LookupError) as error:
        raise failed(str(error)) from error
    if not isinstance(patched, dict):
        raise failed(f"the patched object is not an object but {json_type(patched)}")
    return patched


def _copied(before: int, document: object, pointer: str) -> int:
    """Bytes that the copies of a patch have added, this one included."""
    total = before + len(msgspec.json.encode(jsonpointer.resolve_pointer(document, pointer)))
    if total > MAX_COPIED_BYTES:
        raise failed(f"copy of {pointer!r}: the copies of the patch add {total} bytes, more than {MAX_COPIED_BYTES}")
    return total
