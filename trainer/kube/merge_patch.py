"""JSON merge patches (RFC 7386), and the copies that they are made on."""

from __future__ import annotations

from typing import Any

from trainer.kube.objects import Object


def merge_patch(document: Object, patch: Object) -> Object:
    """Apply a merge patch: objects are merged, null removes, everything else (lists too) replaces.

    Neither argument is changed, and the result shares no structure with them.
    """
    merged: Object = _merge(writable_copy(document), writable_copy(patch))
    return merged


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


def writable_copy(value: Any) -> Any:
    """A deep copy of decoded JSON, which the caller may change."""
    if type(value) is dict:
        return {name: writable_copy(entry) for name, entry in value.items()}
    if type(value) is list:
        return [writable_copy(entry) for entry in value]
    return value
