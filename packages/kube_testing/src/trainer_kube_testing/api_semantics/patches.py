"""Strategic merge patches (Kubernetes documentation, "Strategic merge patch"), and patches that cannot be applied.

None of these functions changes its arguments, and results share no structure with them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from trainer.kube import merge_patch as merge_patches
from trainer.kube.errors import ApiError
from trainer.kube.field_errors import show
from trainer.kube.merge_patch import writable_copy
from trainer.kube.objects import Object
from trainer_kube_testing.api_semantics import statuses
from trainer_kube_testing.api_semantics.json_values import merge_order
from trainer_kube_testing.api_semantics.value_types import UNTYPED, Typing

_DIRECTIVE: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_DELETE_PRIMITIVES: Final = "$deleteFromPrimitiveList/"
_ELEMENT_ORDER: Final = "$setElementOrder/"


class PatchError(Exception):
    """A patch that cannot be applied; nobody retries."""

    def __init__(self, message: str, answer: ApiError) -> None:
        super().__init__(message)
        self.message = message
        self.answer = answer
        """What the API server answers: 400 for no patch of its format, 413 for too many operations, else 422."""


def malformed(message: str) -> PatchError:
    """It is no patch of its format."""
    return PatchError(message, statuses.bad_request(message))


def failed(message: str) -> PatchError:
    """An operation or test does not apply to this object."""
    return PatchError(message, statuses.unprocessable())


def json_type(value: object) -> str:
    """The type of a value as JSON calls it."""
    names: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
    return names.get(type(value), "number")


def merge_patch(document: Object, patch: object) -> Object:
    """Apply a JSON merge patch that a client has sent.

    Raises:
        PatchError: the patch is not an object.
    """
    if not isinstance(patch, dict):
        raise malformed(f"error decoding patch: a merge patch must be an object, not {json_type(patch)}")
    return merge_patches.merge_patch(document, patch)


def strategic_merge_patch(document: Object, patch: object, typing: Typing) -> Object:
    """Apply a strategic merge patch: like a merge patch, but lists are merged by what their type says.

    Raises:
        PatchError: the patch is not an object, or a directive or list item in it is malformed.
    """
    if not isinstance(patch, dict):
        raise malformed(f"error decoding patch: a strategic merge patch must be an object, not {json_type(patch)}")
    return _merge_map(writable_copy(document), writable_copy(patch), typing)


def _merge_map(target: Object, patch: Object, typing: Typing) -> Object:
    directive = patch.pop(_DIRECTIVE, None)
    if directive == "replace":
        return patch
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise malformed(f"unknown patch type {directive!r}: use replace, merge or delete")
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
        raise malformed("the patch has objects in a list of scalars")
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
            raise malformed("the patch mixes scalars and objects in one list")
        directive = item.get(_DIRECTIVE)
        if directive == "delete":
            key = _key_of(item, merge_key)
            merged = [old for old in merged if not _has_key(old, merge_key, key)]
        elif directive == "replace":
            replace = True
        elif directive in (None, "merge"):
            additions.append({name: value for name, value in item.items() if name != _DIRECTIVE})
        else:
            raise malformed(f"unknown patch type {directive!r}: use replace, merge or delete")
    return ([] if replace else merged), additions


def _key_of(item: Object, merge_key: str) -> object:
    if merge_key not in item:
        raise malformed(f"map: {show(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def _has_key(item: object, merge_key: str, key: object) -> bool:
    return isinstance(item, dict) and item.get(merge_key) == key


def _retain_keys(target: Object, patch: Object) -> None:
    retained = patch.pop(_RETAIN_KEYS, None)
    if retained is None:
        return
    if not isinstance(retained, list) or any(name not in retained for name in patch if not name.startswith("$")):
        raise malformed(f"{_RETAIN_KEYS} must list every field of the patch next to it")
    for name in list(target):
        if name not in retained:
            del target[name]


def _take_directives(patch: Object, prefix: str) -> dict[str, list[Any]]:
    taken = {name: patch.pop(name) for name in list(patch) if name.startswith(prefix)}
    for name, value in taken.items():
        if not isinstance(value, list):
            raise malformed(f"{name} must be a list")
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
