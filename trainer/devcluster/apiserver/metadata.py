"""Object metadata: which parts the server owns, and what the others may hold."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

from trainer.devcluster.apiserver.names import label_value_problems, name_problems, qualified_name_problems
from trainer.kube.field_errors import FieldError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.devcluster.apiserver.definitions import ResourceDefinition
    from trainer.kube.objects import Object

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


def validate(metadata: Object, definition: ResourceDefinition) -> list[FieldError]:
    """What is wrong with the metadata of a new object."""
    name = metadata.get("name") or ""
    if not name:
        return [FieldError("metadata.name", "Required value: name or generateName is required", "FieldValueRequired")]
    causes = [
        FieldError("metadata.name", f"Invalid value: {_quoted(name)}: {problem}")
        for problem in name_problems(name, definition.name_rule)
    ]
    return causes + validate_mutable(metadata)


def validate_mutable(metadata: Object) -> list[FieldError]:
    """What is wrong with labels, annotations, finalizers and owner references."""
    causes: list[FieldError] = []
    for key, value in (metadata.get("labels") or {}).items():
        causes += [_invalid("labels", key, problem) for problem in qualified_name_problems(key)]
        causes += [_invalid("labels", value, problem) for problem in label_value_problems(value)]
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    for key in annotations:
        causes += [_invalid("annotations", key, problem) for problem in qualified_name_problems(key.lower())]
    if sum(len(key) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS_BYTES:
        message = f"Too long: may not be more than {MAX_ANNOTATIONS_BYTES} bytes"
        causes.append(FieldError("metadata.annotations", message, "FieldValueTooLong"))
    for finalizer in metadata.get("finalizers") or []:
        causes += [_invalid("finalizers", finalizer, problem) for problem in qualified_name_problems(finalizer)]
    return causes + _validate_owners(metadata.get("ownerReferences") or [])


def validate_update(metadata: Object, old: Object) -> list[FieldError]:
    """What is wrong with the metadata of a changed object."""
    causes = validate_mutable(metadata)
    if old.get("deletionTimestamp"):
        added = [name for name in metadata.get("finalizers") or [] if name not in (old.get("finalizers") or [])]
        if added:
            listed = ", ".join(_quoted(name) for name in added)
            message = (
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}"
            )
            # The real server checks metadata in the generic update and again in the kind's strategy.
            causes += [FieldError("metadata.finalizers", message, "FieldValueForbidden")] * 2
    return causes


def _validate_owners(owners: list[Object]) -> list[FieldError]:
    causes: list[FieldError] = []
    for index, owner in enumerate(owners):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                message = f"Invalid value: {_quoted(owner.get(name) or '')}: {name} must not be empty"
                causes.append(FieldError(f"metadata.ownerReferences[{index}].{name}", message))
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        message = "Invalid value: Only one reference can have Controller set to true"
        causes.append(FieldError("metadata.ownerReferences", message))
    return causes


def _invalid(name: str, value: str, problem: str) -> FieldError:
    return FieldError(f"metadata.{name}", f"Invalid value: {_quoted(value)}: {problem}")


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
