"""Field managers: who owns which field, server-side apply, and the bookkeeping of all other writes.

Sources: Kubernetes documentation, "Server-Side Apply"; KEP-555. None of these functions changes its arguments.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from trainer.kube.errors import ApiError
from trainer.kube.field_errors import FieldError
from trainer.kube.merge_patch import writable_copy
from trainer.kube.objects import Object, annotations_of, metadata_of, name_of, namespace_of, uid_of
from trainer_kube_testing.api_semantics import field_sets, statuses
from trainer_kube_testing.api_semantics.field_sets import EMPTY, FieldSet, Path
from trainer_kube_testing.api_semantics.json_values import same
from trainer_kube_testing.api_semantics.typed_values import (
    TypedValueError,
    compare,
    fields_of,
    merge,
    remove,
    with_named_parents,
)
from trainer_kube_testing.api_semantics.value_types import Typing

MAX_UPDATE_MANAGERS: Final = 10
"""So many managers of updates are kept apart; older ones are merged into one."""

_APPLY, _UPDATE = "Apply", "Update"
_NOTHING: Final[Object] = {"metadata": {}}
_MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
_ANCIENT_CHANGES: Final = "ancient-changes"
_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_KUBECTL: Final = "kubectl"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_STATUS_RESETS: Final = ("metadata", "spec")
_SERVER_OWNED: Final[FieldSet] = frozenset(
    {
        ("f:apiVersion",), ("f:kind",), ("f:metadata",),
        *(("f:metadata", f"f:{name}") for name in (
            "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields",
            "resourceVersion",
        )),
    }
)  # fmt: skip


class _Identity(NamedTuple):
    """The key of an entry of managedFields."""

    manager: str
    operation: str
    subresource: str
    api_version: str
    """Empty for applies: one applier owns fields across versions."""

    @property
    def described(self) -> str:
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == _UPDATE else text


@dataclass(frozen=True, slots=True)
class _Entry:
    fields: FieldSet
    time: str
    api_version: str
    stored: Object | None = None
    """FieldsV1 of the fields as the live object has it, which need not be rendered again; None when not known."""

    def without(self, paths: FieldSet) -> _Entry:
        """The entry without some fields."""
        if self.fields.isdisjoint(paths):
            return self
        return _Entry(self.fields - paths, self.time, self.api_version)


_Managers = dict[_Identity, _Entry]


def apply(
    live: Object | None,
    applied: Object,
    *,
    manager: str,
    force: bool,
    schema: Typing,
    subresource: str | None,
    now: str,
    empty: Object | None = None,
    reset_fields: Collection[str] | None = None,
) -> Object:
    """Server-side apply: merge a configuration into the live object.

    `live` is None when the apply creates the object, and `applied` is not pruned or defaulted. `empty` is what Go
    writes for an object of the kind in which nothing is set; nobody comes to own that. `reset_fields` are top-level
    fields that this endpoint does not change and nobody comes to own through it, such as `status` on a resource with a
    status subresource; by default `metadata` and `spec` on `status`, none elsewhere.

    Returns:
        A new object with its managedFields; equal to `live`, times included, when nothing changes. Formerly applied
        fields that are no longer in the configuration, and that nobody else owns, are gone.

    Raises:
        ConflictError: without `force`, others own fields that would change.
        InternalError: the configuration has unknown fields or values of the wrong type.
    """
    if reset_fields is None:
        reset_fields = _STATUS_RESETS if subresource == "status" else ()
    config = {name: value for name, value in applied.items() if name not in reset_fields}
    api_version = str(applied.get("apiVersion") or "")
    identity = _Identity(manager, _APPLY, subresource or "", "")
    before = _managers_of_live(live, empty, schema, api_version)
    old = {} if live is None else _without_managed_fields(live)
    try:
        owned = fields_of(config, schema) - _SERVER_OWNED
    except TypedValueError as error:
        message = f"failed to create typed patch object ({_describe(applied)}): {error}"
        raise statuses.failure(500, "", message) from error
    previous = before[identity].fields if identity in before else EMPTY
    managers = {**before, identity: _Entry(owned, now, api_version)}
    merged: Object = merge(old, config, schema)
    merged = remove(merged, _abandoned(previous, managers, schema), schema)
    others = {other: entry for other, entry in managers.items() if other != identity}
    conflicts, others = _take_over(others, old, merged, schema)
    if not force:
        _refuse(conflicts, _applied_by_kubectl(live, schema) if manager == _KUBECTL else EMPTY)
    managers = {**others, identity: managers[identity]}
    if manager == _KUBECTL and _LAST_APPLIED in annotations_of(old):
        merged = _with_last_applied(merged, applied)
    if live is not None and same(merged, old) and _fields(managers) == _fields(before):
        managers = before
    return _with_managed_fields(merged, managers)


def update(
    live: Object | None,
    new: Object,
    *,
    manager: str,
    schema: Typing,
    subresource: str | None,
    now: str | None,
    empty: Object | None = None,
) -> list[Object]:
    """The managedFields of an object that was created, updated or patched.

    The managedFields of `new`, the object as it will be stored, count when they are set; an empty list or one empty
    entry resets them, and without them those of `live` are carried on.

    Returns:
        New entries; times change only where fields do. Empty when nobody owns anything.
    """
    managers = _managers_to_carry_on(live, new)
    if not managers and live is not None and uid_of(live):
        # Somebody has reset the entries: the documented way to stop the bookkeeping of an object.
        return []
    api_version = str(new.get("apiVersion") or "")
    old = (empty or _NOTHING) if live is None else _without_managed_fields(live)
    taken, managers = _take_over_all(managers, old, _without_managed_fields(new), schema)
    if taken:
        identity = _Identity(manager, _UPDATE, subresource or "", api_version)
        previous = managers[identity].fields if identity in managers else EMPTY
        managers[identity] = _Entry(previous | taken, now or "", api_version)
    return _encode(_capped(managers))


def _take_over_all(managers: _Managers, old: Object, new: Object, schema: Typing) -> tuple[FieldSet, _Managers]:
    changes = compare(old, new, schema)
    taken = (changes.added | changes.modified) - _SERVER_OWNED
    gone = taken | changes.removed
    remaining = {identity: entry.without(gone) for identity, entry in managers.items()}
    return taken, {identity: entry for identity, entry in remaining.items() if entry.fields}


def _take_over(
    managers: _Managers, old: Object, new: Object, schema: Typing
) -> tuple[dict[_Identity, FieldSet], _Managers]:
    """Take changed fields from the other managers; returns the conflicts, and the managers without those fields."""
    taken, remaining = _take_over_all(managers, old, new, schema)
    conflicts = {identity: entry.fields & taken for identity, entry in managers.items()}
    return {identity: paths for identity, paths in conflicts.items() if paths}, remaining


def _abandoned(previous: FieldSet, managers: _Managers, schema: Typing) -> FieldSet:
    """Fields that the applier used to own and that nobody owns now."""
    if not previous:
        return EMPTY
    owned = frozenset(path for entry in managers.values() for path in entry.fields)
    unowned = with_named_parents(previous, schema) - with_named_parents(owned, schema)
    return unowned - _SERVER_OWNED


def _refuse(conflicts: Mapping[_Identity, FieldSet], yielding: FieldSet) -> None:
    def order(item: tuple[_Identity, FieldSet]) -> tuple[str, str, str, str]:
        identity, _ = item
        return identity.manager, identity.operation, identity.api_version, identity.subresource

    remaining = {
        other.described: paths - yielding for other, paths in sorted(conflicts.items(), key=order) if paths - yielding
    }
    if remaining:
        raise _conflict(remaining)


def _conflict(conflicts: Mapping[str, Collection[Path]]) -> ApiError:
    """The answer to conflicts, which are paths by the description of the manager that owns them."""
    shown = {
        manager: [field_sets.display(path) for path in field_sets.ordered(paths)]
        for manager, paths in conflicts.items()
    }
    listed = [(manager, field) for manager, fields in shown.items() for field in fields]
    causes = [FieldError(field, f"conflict with {manager}", "FieldManagerConflict") for manager, field in listed]
    if len(listed) == 1:
        manager, field = listed[0]
        text = f"1 conflict: conflict with {manager}: {field}"
    else:
        lines = []
        for manager, fields in shown.items():
            lines.append(f"conflicts with {manager}:")
            lines += [f"- {field}" for field in fields]
        text = f"{len(listed)} conflicts: " + "\n".join(lines)
    return statuses.apply_conflict(causes, f"Apply failed with {text}")


def _applied_by_kubectl(live: Object | None, schema: Typing) -> FieldSet:
    """What kubectl applied on the client side and nobody has changed since (Kubernetes documentation, "Upgrading")."""
    text = annotations_of(live or {}).get(_LAST_APPLIED)
    if not text:
        return EMPTY
    try:
        configuration = json.loads(text)
        stated = fields_of(configuration, schema)
    except ValueError:
        return EMPTY
    changes = compare(configuration, live, schema)
    return stated - changes.modified - changes.added - changes.removed


def _with_last_applied(merged: Object, applied: Object) -> Object:
    """The object with the configuration where client-side `kubectl apply` looks for it, so that users can go back."""
    configuration = writable_copy(applied)
    annotations = (configuration.get("metadata") or {}).get("annotations") or {}
    annotations.pop(_LAST_APPLIED, None)
    text = json.dumps(configuration, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n"
    kept = {**annotations_of(merged), _LAST_APPLIED: text}
    if sum(len(name.encode()) + len(value.encode()) for name, value in kept.items()) > _MAX_ANNOTATIONS_BYTES:
        del kept[_LAST_APPLIED]
    return {**merged, "metadata": {**metadata_of(merged), "annotations": kept}}


def _managers_of_live(live: Object | None, empty: Object | None, schema: Typing, api_version: str) -> _Managers:
    if live is None:
        return {}
    managers = _decode_stored(live)
    if managers:
        return managers
    taken, _ = _take_over_all({}, empty or _NOTHING, _without_managed_fields(live), schema)
    if not taken:
        return {}
    identity = _Identity(_BEFORE_FIRST_APPLY, _UPDATE, "", api_version)
    return {identity: _Entry(taken, "", api_version)}


def _managers_to_carry_on(live: Object | None, new: Object) -> _Managers:
    given = metadata_of(new).get("managedFields")
    if given is not None and given in ([], [{}]) and live is not None:
        return {}
    if given and (live is None or given != metadata_of(live).get("managedFields")):
        managers = _decode(given)
        if managers:
            return managers
    return _decode_stored(live)


def _decode_stored(live: Object | None) -> _Managers:
    """The managers of a stored object, whose entries are as `_encode` has left them."""
    entries = metadata_of(live or {}).get("managedFields") or []
    managers = _decode(entries)
    if len(managers) != len(entries):
        return managers
    return {
        identity: replace(decoded, stored=entry.get("fieldsV1"))
        for (identity, decoded), entry in zip(managers.items(), entries, strict=True)
    }


def _decode(entries: list[Object]) -> _Managers:
    managers: _Managers = {}
    for entry in entries:
        operation, api_version = entry.get("operation"), entry.get("apiVersion") or ""
        if operation not in (_APPLY, _UPDATE):
            continue
        identity = _Identity(
            entry.get("manager") or "",
            operation,
            entry.get("subresource") or "",
            api_version if operation == _UPDATE else "",
        )
        fields = field_sets.parse(entry.get("fieldsV1") or {})
        managers[identity] = _Entry(fields, entry.get("time") or "", api_version)
    return managers


def _encode(managers: _Managers) -> list[Object]:
    def order(item: tuple[_Identity, _Entry]) -> tuple[str, str, str, str, str]:
        identity, entry = item
        return identity.operation, entry.time, identity.manager, entry.api_version, identity.subresource

    return [_encode_entry(identity, entry) for identity, entry in sorted(managers.items(), key=order)]


def _encode_entry(identity: _Identity, entry: _Entry) -> Object:
    encoded: dict[str, Any] = {
        "manager": identity.manager,
        "operation": identity.operation,
        "apiVersion": entry.api_version,
    }
    if entry.time:
        encoded["time"] = entry.time
    encoded |= {"fieldsType": "FieldsV1", "fieldsV1": entry.stored or field_sets.render(entry.fields)}
    if identity.subresource:
        encoded["subresource"] = identity.subresource
    return encoded


def _capped(managers: _Managers) -> _Managers:
    updates = sorted((entry.time, identity) for identity, entry in managers.items() if identity.operation == _UPDATE)
    capped = dict(managers)
    for _, identity in updates[: max(len(updates) - MAX_UPDATE_MANAGERS, 0)]:
        entry = capped.pop(identity)
        bucket = _Identity(_ANCIENT_CHANGES, _UPDATE, "", entry.api_version)
        known = capped.get(bucket)
        fields = entry.fields | known.fields if known is not None else entry.fields
        capped[bucket] = _Entry(fields, entry.time, entry.api_version)
    return capped


def _fields(managers: _Managers) -> dict[_Identity, tuple[FieldSet, str]]:
    return {identity: (entry.fields, entry.api_version) for identity, entry in managers.items() if entry.fields}


def _with_managed_fields(obj: Object, managers: _Managers) -> Object:
    entries = _encode({identity: entry for identity, entry in managers.items() if entry.fields})
    metadata = {**metadata_of(obj), "managedFields": entries}
    if not entries:
        del metadata["managedFields"]
    return {**obj, "metadata": metadata}


def _without_managed_fields(obj: Object) -> Object:
    metadata = {name: value for name, value in metadata_of(obj).items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


def _describe(applied: Object) -> str:
    group_version, kind = applied.get("apiVersion"), applied.get("kind")
    return f"{namespace_of(applied)}/{name_of(applied)}; {group_version}, Kind={kind}"
