"""Patches: the three formats of a PATCH request that need no field manager.

Sources: RFC 6902 (JSON patch), RFC 7386 (merge patch), Kubernetes documentation, "Strategic merge patch".
None of these functions changes its arguments, and results share no structure with them.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

import jsonpatch
import jsonpointer
import msgspec

from trainer_devcluster.apiserver.objects.list_order import merge_order
from trainer_devcluster.apiserver.objects.list_types import UNTYPED, Typing
from trainer_devcluster.apiserver.patching.typed_values import go_text
from trainer_devcluster.apiserver.storage.storage import writable_copy

if TYPE_CHECKING:
    from collections.abc import Hashable

    from trainer.kube.objects import Object

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
"""What all copies of one JSON patch may add: each can double the object, so that thirty of them would fill any memory.
"""

_DIRECTIVE: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_DELETE_PRIMITIVES: Final = "$deleteFromPrimitiveList/"
_ELEMENT_ORDER: Final = "$setElementOrder/"


class PatchErrorKind(Enum):
    """What is wrong with a patch; decides the HTTP status."""

    MALFORMED = auto()
    """It is no patch of its format: 400 BadRequest."""
    FAILED = auto()
    """An operation or test does not apply to this object: 422."""
    TOO_LARGE = auto()
    """It has too many operations: 413."""


class PatchError(Exception):
    """A patch that cannot be applied; nobody retries."""

    def __init__(self, kind: PatchErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


def json_patch(document: Object, operations: object) -> Object:
    """Apply a JSON patch.

    Raises:
        PatchError: the operations are malformed or too many, copy too much, or one of them fails on this document.
    """
    if not isinstance(operations, list):
        found = _json_type(operations)
        raise _malformed(f"error decoding patch: json: cannot unmarshal {found} into Go value of type jsonpatch.Patch")
    if len(operations) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise PatchError(PatchErrorKind.TOO_LARGE, message)
    try:
        steps = [jsonpatch.JsonPatch([operation]) for operation in writable_copy(operations)]
    except (jsonpatch.InvalidJsonPatch, jsonpointer.JsonPointerException, TypeError, AttributeError) as error:
        raise _malformed(f"error decoding patch: {error}") from error
    try:
        patched, copied = writable_copy(document), 0
        for step, operation in zip(steps, operations, strict=True):
            if operation["op"] == "copy":
                copied = _copied(copied, patched, operation["from"])
            patched = step.apply(patched, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, LookupError) as error:
        raise PatchError(PatchErrorKind.FAILED, str(error)) from error
    if not isinstance(patched, dict):
        raise PatchError(PatchErrorKind.FAILED, f"the patched object is not an object but {_json_type(patched)}")
    return patched


def merge_patch(document: Object, patch: object) -> Object:
    """Apply a JSON merge patch: objects are merged, null removes, everything else (lists too) replaces.

    Raises:
        PatchError: the patch is not an object.
    """
    if not isinstance(patch, dict):
        raise _malformed(f"error decoding patch: a merge patch must be an object, not {_json_type(patch)}")
    merged: Object = _merge(writable_copy(document), writable_copy(patch))
    return merged


def strategic_merge_patch(document: Object, patch: object, typing: Typing) -> Object:
    """Apply a strategic merge patch: like a merge patch, but lists are merged by what their type says.

    Raises:
        PatchError: the patch is not an object, or a directive or list item in it is malformed.
    """
    if not isinstance(patch, dict):
        raise _malformed(f"error decoding patch: a strategic merge patch must be an object, not {_json_type(patch)}")
    return _merge_map(writable_copy(document), writable_copy(patch), typing)


def _copied(before: int, document: object, pointer: str) -> int:
    """Bytes that the copies of a patch have added, this one included."""
    total = before + len(msgspec.json.encode(jsonpointer.resolve_pointer(document, pointer)))
    if total > MAX_COPIED_BYTES:
        message = f"copy of {pointer!r}: the copies of the patch add {total} bytes, more than {MAX_COPIED_BYTES}"
        raise PatchError(PatchErrorKind.FAILED, message)
    return total


def _malformed(message: str) -> PatchError:
    return PatchError(PatchErrorKind.MALFORMED, message)


def _json_type(value: object) -> str:
    names: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
    return names.get(type(value), "number")


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = target if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value)
    return merged


def _merge_map(target: Object, patch: Object, typing: Typing) -> Object:
    directive = patch.pop(_DIRECTIVE, None)
    if directive == "replace":
        return patch
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise _malformed(f"unknown patch type {directive!r}: use replace, merge or delete")
    _retain_keys(target, patch)
    deletions = _take_directives(patch, _DELETE_PRIMITIVES)
    orders = _take_directives(patch, _ELEMENT_ORDER)
    for name, unwanted in deletions.items():
        if isinstance(target.get(name), list):
            target[name] = [value for value in target[name] if value not in unwanted]
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = _merge_value(target.get(name), value, typing.field(name) or UNTYPED)
    for name, order in orders.items():
        if isinstance(target.get(name), list):
            target[name] = _in_order(target[name], order, (typing.field(name) or UNTYPED).merge_key)
    return target


def _merge_value(target: Any, patch: Any, typing: Typing) -> Any:
    if isinstance(patch, dict):
        if "replace" in typing.patch_strategies:
            return _without_directives(patch)
        if isinstance(target, dict):
            return _merge_map(target, patch, typing)
        return _without_directives(patch)
    if isinstance(patch, list) and isinstance(target, list) and "merge" in typing.patch_strategies:
        return _merge_list(target, patch, typing)
    return _without_directives(patch)


def _merge_list(target: list[Any], patch: list[Any], typing: Typing) -> list[Any]:
    if not any(isinstance(item, dict) for item in patch + target):
        merged = list(target)
        for item in patch:
            if item not in merged:
                merged.append(item)
        return merged
    if typing.merge_key is None:
        raise _malformed("the patch has objects in a list of scalars")
    merged, additions = _apply_item_directives(target, patch, typing.merge_key)
    for item in additions:
        key = _key_of(item, typing.merge_key)
        index = next((at for at, old in enumerate(merged) if _has_key(old, typing.merge_key, key)), None)
        if index is None:
            merged.append(_without_directives(item))
        else:
            merged[index] = _merge_map(merged[index], item, typing.item)
    return merged


def _apply_item_directives(target: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """What is left of the list after deletions and replacements, and the patch items still to be merged."""
    merged, additions, replace = target, [], False
    for item in patch:
        if not isinstance(item, dict):
            raise _malformed("the patch mixes scalars and objects in one list")
        directive = item.get(_DIRECTIVE)
        if directive == "delete":
            key = _key_of(item, merge_key)
            merged = [old for old in merged if not _has_key(old, merge_key, key)]
        elif directive == "replace":
            replace = True
        elif directive in (None, "merge"):
            additions.append({name: value for name, value in item.items() if name != _DIRECTIVE})
        else:
            raise _malformed(f"unknown patch type {directive!r}: use replace, merge or delete")
    return ([] if replace else merged), additions


def _key_of(item: Object, merge_key: str) -> object:
    if merge_key not in item:
        raise _malformed(f"map: {go_text(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def _has_key(item: object, merge_key: str, key: object) -> bool:
    return isinstance(item, dict) and item.get(merge_key) == key


def _retain_keys(target: Object, patch: Object) -> None:
    retained = patch.pop(_RETAIN_KEYS, None)
    if retained is None:
        return
    if not isinstance(retained, list) or any(name not in retained for name in patch if not name.startswith("$")):
        raise _malformed(f"{_RETAIN_KEYS} must list every field of the patch next to it")
    for name in list(target):
        if name not in retained:
            del target[name]


def _take_directives(patch: Object, prefix: str) -> dict[str, list[Any]]:
    taken = {name: patch.pop(name) for name in list(patch) if name.startswith(prefix)}
    for name, value in taken.items():
        if not isinstance(value, list):
            raise _malformed(f"{name} must be a list")
    return {name.removeprefix(prefix): value for name, value in taken.items()}


def _in_order(items: list[Any], order: list[Any], merge_key: str | None) -> list[Any]:
    def key(item: Any) -> Hashable:
        value = item.get(merge_key) if isinstance(item, dict) else item
        return value if isinstance(value, str | int | float | bool) else repr(value)

    by_key = {key(item): item for item in items}
    return [by_key[name] for name in merge_order(list(by_key), [key(item) for item in order]) if name in by_key]


def _without_directives(value: Any) -> Any:
    if isinstance(value, list):
        kept = [
            item for item in value if not (isinstance(item, dict) and item.get(_DIRECTIVE) in ("delete", "replace"))
        ]
        return [_without_directives(item) for item in kept]
    if not isinstance(value, dict):
        return value
    if value.get(_DIRECTIVE) == "delete":
        return {}
    directives = (_DELETE_PRIMITIVES, _ELEMENT_ORDER)
    return {
        name: _without_directives(entry)
        for name, entry in value.items()
        if entry is not None and name not in (_DIRECTIVE, _RETAIN_KEYS) and not name.startswith(directives)
    }
