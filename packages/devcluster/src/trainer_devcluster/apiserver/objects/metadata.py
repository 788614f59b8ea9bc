"""Object metadata: which parts the server owns, and what the others may hold."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping

from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.names import label_value_problems, qualified_name_problems
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems

ORPHAN_FINALIZER = "orphan"
FOREGROUND_FINALIZER = "foregroundDeletion"
MAX_ANNOTATIONS_BYTES = 256 * 1024

_SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
_UNCHANGEABLE = ("uid", "creationTimestamp", "deletionTimestamp")
_STANDARD_FINALIZERS = frozenset({"kubernetes", ORPHAN_FINALIZER, FOREGROUND_FINALIZER})
_OWNER_PARTS = {"apiVersion": "version", "kind": "kind", "name": "name", "uid": "uid"}


def initialize(metadata: Object, *, namespace: str | None, now: str, generation: bool) -> Object:
    """Metadata of a new object: what the client may say, plus what the server says."""
    kept = {
        name: value for name, value in metadata.items() if name not in _SERVER_OWNED and value not in (None, {}, [])
    }
    kept.pop("resourceVersion", None)
    kept["uid"] = str(uuid.uuid4())
    kept["creationTimestamp"] = now
    if generation:
        kept["generation"] = 1
    if namespace is not None:
        kept["namespace"] = namespace
    else:
        kept.pop("namespace", None)
    return kept


def without_server_owned(metadata: Object) -> Object:
    """Metadata without the parts that only the server sets."""
    return {name: value for name, value in metadata.items() if name not in _SERVER_OWNED}


def carry_over(metadata: Object, old: Object) -> Object:
    """Metadata of a changed object: server-owned parts come from the stored one, empty collections are dropped."""
    kept = {
        name: value for name, value in metadata.items() if name not in _SERVER_OWNED and value not in (None, {}, [], "")
    }
    kept.update({name: old[name] for name in _SERVER_OWNED if name in old})
    for name in ("name", "namespace"):
        if name in old:
            kept[name] = old[name]
    if "generateName" in old:
        kept.setdefault("generateName", old["generateName"])
    return kept


def validate(metadata: Object, name_rule: NameRule) -> list[FieldError]:
    """What is wrong with the metadata of a new object."""
    name = metadata.get("name") or ""
    if not name:
        return [FieldError("metadata.name", "Required value: name or generateName is required", "FieldValueRequired")]
    causes = [invalid("metadata.name", name, problem) for problem in name_problems(name, name_rule)]
    return causes + validate_mutable(metadata)


def validate_mutable(metadata: Object) -> list[FieldError]:
    """What is wrong with labels, annotations, finalizers and owner references."""
    causes: list[FieldError] = []
    for key, value in (metadata.get("labels") or {}).items():
        causes += [invalid("metadata.labels", key, problem) for problem in qualified_name_problems(key)]
        causes += [invalid("metadata.labels", value, problem) for problem in label_value_problems(value)]
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    for key in annotations:
        causes += [invalid("metadata.annotations", key, problem) for problem in qualified_name_problems(key.lower())]
    if sum(len(key) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS_BYTES:
        message = f"Too long: may not be more than {MAX_ANNOTATIONS_BYTES} bytes"
        causes.append(FieldError("metadata.annotations", message, "FieldValueTooLong"))
    finalizers = metadata.get("finalizers") or []
    for finalizer in finalizers:
        causes += [invalid("metadata.finalizers", finalizer, problem) for problem in qualified_name_problems(finalizer)]
    if {ORPHAN_FINALIZER, FOREGROUND_FINALIZER} <= set(finalizers):
        detail = f"finalizer {ORPHAN_FINALIZER} and {FOREGROUND_FINALIZER} cannot be both set"
        causes.append(invalid("metadata.finalizers", finalizers, detail))
    return causes + _validate_owners(metadata.get("ownerReferences") or [])


def finalizer_warnings(metadata: Object, old: Object | None = None) -> list[str]:
    """What the server says about new finalizers that belong to no domain; custom resources may have such."""
    known = set((old or {}).get("finalizers") or ())
    return [
        f"metadata.finalizers: {_quoted(finalizer)}: prefer a domain-qualified finalizer name including a path (/) to "
        "avoid accidental conflicts with other finalizer writers"
        for finalizer in metadata.get("finalizers") or ()
        if finalizer not in known and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS
    ]


def validate_standard_finalizers(metadata: Object) -> list[FieldError]:
    """What is wrong with finalizers of a built-in kind, which are standard ones or belong to a domain."""
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"metadata.finalizers[{index}]", finalizer, detail)
        for index, finalizer in enumerate(metadata.get("finalizers") or ())
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS
    ]


def _unchangeable(metadata: Object, old: Object) -> list[FieldError]:
    """Changes of what stays as it is for the life of an object; leaving it out is no change."""
    return [
        invalid(f"metadata.{name}", metadata[name], "field is immutable")
        for name in _UNCHANGEABLE
        if metadata.get(name) and metadata[name] != old.get(name)
    ]


def validate_update(metadata: Object, old: Object, given: Object | None = None) -> list[FieldError]:
    """What is wrong with the metadata of a changed object.

    Args:
        metadata: with the server's parts as they are stored.
        old: the stored metadata.
        given: as the request has it, server's parts included.
    """
    causes = _unchangeable(given or {}, old) + validate_mutable(metadata)
    if old.get("deletionTimestamp"):
        added = [name for name in metadata.get("finalizers") or [] if name not in (old.get("finalizers") or [])]
        if added:
            listed = ", ".join(_quoted(name) for name in added)
            message = (
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}"
            )
            causes.append(FieldError("metadata.finalizers", message, "FieldValueForbidden"))
    # The real server checks metadata in the generic update and again in the kind's strategy.
    return causes * 2


def _validate_owners(owners: list[Object]) -> list[FieldError]:
    causes: list[FieldError] = []
    controller = ""
    for owner in owners:
        for name, noun in _OWNER_PARTS.items():
            if not owner.get(name):
                causes.append(invalid(f"metadata.ownerReferences.{name}", "", f"{noun} must not be empty"))
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            message = f"Invalid value: {_shown(owner)}: /v1, Kind=Event is disallowed from being an owner"
            causes.append(FieldError("metadata.ownerReferences", message))
        if not owner.get("controller"):
            continue
        described = f"{owner.get('kind')}/{owner.get('name')}"
        if controller:
            message = (
                f"Invalid value: {_shown(owners)}: Only one reference can have Controller set to true. "
                f'Found "true" in references for {controller} and {described}'
            )
            causes.append(FieldError("metadata.ownerReferences", message))
        controller = controller or described
    return causes


def _shown(value: Object | list[Object]) -> str:
    """An owner reference, or several, with the fields in the order of their declaration."""
    if isinstance(value, list):
        return f"[{','.join(map(_shown, value))}]"
    ordered = {name: value[name] for name in (*_OWNER_PARTS, "controller", "blockOwnerDeletion") if name in value}
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
