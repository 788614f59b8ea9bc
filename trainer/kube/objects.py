"""Kubernetes objects as decoded JSON, and the few questions asked of every one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object as decoded JSON, camelCase keys as on the wire.

What a lister or the client returns belongs to the caller."""


class ObjectKey(NamedTuple):
    """Namespace and name of an object; the namespace is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def mapping_at(value: Any, *path: str) -> Object:
    """The member at a path of something that nobody has validated; empty if it is absent or no mapping."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def objects_in(value: Any) -> list[Object]:
    """The objects in a list that nobody has validated; empty if it is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def holders_at(value: Any, path: str) -> Iterator[tuple[Object, str]]:
    """The mappings that have the field of a path such as `spec.containers.image`, and its name in them.

    Each item of a list on the way counts. Of something that nobody has validated.
    """
    name, _, rest = path.partition(".")
    for each in objects_in(value) if isinstance(value, list) else [value]:
        if not isinstance(each, dict) or name not in each:
            continue
        if rest:
            yield from holders_at(each[name], rest)
        else:
            yield each, name


def metadata_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The object's metadata; an empty dict when it has none."""
    metadata: dict[str, Any] = obj.get("metadata") or {}
    return metadata


def name_of(obj: Mapping[str, Any]) -> str:
    """`metadata.name`, or "" before the server has named it."""
    value: str = (obj.get("metadata") or {}).get("name") or ""
    return value


def namespace_of(obj: Mapping[str, Any]) -> str:
    """`metadata.namespace`, or "" for a cluster-scoped object."""
    value: str = (obj.get("metadata") or {}).get("namespace") or ""
    return value


def key_of(obj: Mapping[str, Any]) -> ObjectKey:
    """The key under which informers and work queues know the object."""
    return ObjectKey(namespace_of(obj), name_of(obj))


def uid_of(obj: Mapping[str, Any]) -> str:
    """`metadata.uid`, or "" before the object is stored."""
    value: str = (obj.get("metadata") or {}).get("uid") or ""
    return value


def resource_version_of(obj: Mapping[str, Any]) -> str:
    """`metadata.resourceVersion`, or "" before the object is stored."""
    value: str = (obj.get("metadata") or {}).get("resourceVersion") or ""
    return value


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """`metadata.labels`; empty when absent."""
    value: dict[str, str] = (obj.get("metadata") or {}).get("labels") or {}
    return value


def annotations_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """`metadata.annotations`; empty when absent."""
    value: dict[str, str] = (obj.get("metadata") or {}).get("annotations") or {}
    return value


def has_finished(pod: Mapping[str, Any]) -> bool:
    """Whether a pod has reached a phase that it keeps, Succeeded or Failed: no container of it runs again."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_being_deleted(obj: Mapping[str, Any]) -> bool:
    """Whether a deletion has been accepted and waits for finalizers or the grace period."""
    return bool(metadata_of(obj).get("deletionTimestamp"))


def is_at_its_end(obj: Mapping[str, Any]) -> bool:
    """Whether the deletion waits for nothing more, so that the server has removed the object with this very state.

    Namespaces have finalizers of their own in their specification.
    """
    metadata, spec = metadata_of(obj), obj.get("spec")
    finalizers = metadata.get("finalizers") or (isinstance(spec, dict) and spec.get("finalizers"))
    return is_being_deleted(obj) and not finalizers and not metadata.get("deletionGracePeriodSeconds")


def owner_references_of(obj: Mapping[str, Any]) -> list[dict[str, Any]]:
    """`metadata.ownerReferences`; empty when absent."""
    found: list[dict[str, Any]] = metadata_of(obj).get("ownerReferences") or []
    return found


def controller_of(obj: Mapping[str, Any]) -> dict[str, Any] | None:
    """The owner reference with `controller: true`, of which the API server allows one."""
    for reference in owner_references_of(obj):
        if reference.get("controller"):
            return reference
    return None


def is_controlled_by(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Whether the controller owner reference names this very owner (by uid, so a re-created owner does not match)."""
    ref = controller_of(obj)
    return ref is not None and ref.get("uid") == uid_of(owner)


def owner_reference(owner: Mapping[str, Any]) -> dict[str, Any]:
    """An owner reference: garbage collection deletes the object once all its owners are gone.

    The owner must carry `apiVersion` and `kind` (items of built-in lists do not; informers add them).
    """
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name_of(owner), "uid": uid_of(owner)}


def controller_reference(owner: Mapping[str, Any]) -> dict[str, Any]:
    """An owner reference that makes `owner` the controller and lets a foreground deletion of it wait for the child."""
    return owner_reference(owner) | {"controller": True, "blockOwnerDeletion": True}


def find_condition(obj: Mapping[str, Any], condition_type: str) -> dict[str, Any] | None:
    """The entry of `status.conditions` with this type."""
    condition: dict[str, Any]
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == condition_type:
            return condition
    return None


def set_condition(conditions: Iterable[Object], condition: Object, now: str) -> list[Object]:
    """The conditions with this one in the place of that of its type, or at the end.

    Args:
        conditions: those of the status; they are not changed.
        condition: type and status, and what else it shall have, such as reason, message and observedGeneration.
        now: lastTransitionTime where the status is another one than before; else that of before stays.
    """
    by_type = {each["type"]: each for each in conditions}
    before = by_type.get(condition["type"]) or {}
    since = before.get("lastTransitionTime") if before.get("status") == condition["status"] else None
    by_type[condition["type"]] = {**condition, "lastTransitionTime": since or now}
    return list(by_type.values())


def is_condition_true(obj: Mapping[str, Any], condition_type: str) -> bool:
    """Whether `status.conditions` has this type with status "True"."""
    condition = find_condition(obj, condition_type)
    return condition is not None and condition.get("status") == "True"
