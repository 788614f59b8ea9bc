"""Who owns whom: the owner references of all objects, seen from both ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from trainer.kube.objects import is_being_deleted, key_of, metadata_of, owner_references_of, uid_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.objects import Object, ObjectKey
    from trainer.kube.resource import Resource

FOREGROUND = "foregroundDeletion"
"""Finalizer of an object that waits until its dependents are gone."""
ORPHAN = "orphan"
"""Finalizer of an object whose dependents are to be kept."""


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """One entry of `metadata.ownerReferences`."""

    group: str
    version: str
    kind: str
    name: str
    uid: str
    blocks: bool
    """Whether a foreground deletion of the owner waits for the dependent."""

    @classmethod
    def of(cls, reference: Object) -> Self:
        """Decode an entry."""
        group, _, version = str(reference.get("apiVersion") or "").rpartition("/")
        blocks = bool(reference.get("blockOwnerDeletion"))
        return cls(group, version, reference["kind"], reference["name"], reference["uid"], blocks)


@dataclass(frozen=True, slots=True)
class Node:
    """What garbage collection needs to know of an object."""

    resource: Resource
    key: ObjectKey
    uid: str
    owners: tuple[OwnerReference, ...]
    being_deleted: bool
    finalizers: frozenset[str]

    @classmethod
    def of(cls, resource: Resource, obj: Mapping[str, Any]) -> Self:
        """Take it from the object's metadata."""
        # Decoded once: a cached object does it at each access.
        metadata = metadata_of(obj)
        obj = {"metadata": metadata}
        return cls(
            resource=resource,
            key=key_of(obj),
            uid=uid_of(obj),
            owners=tuple(OwnerReference.of(reference) for reference in owner_references_of(obj)),
            being_deleted=is_being_deleted(obj),
            finalizers=frozenset(metadata.get("finalizers") or ()),
        )

    @property
    def waits_for_dependents(self) -> bool:
        """Whether the object is being deleted in the foreground."""
        return self.being_deleted and FOREGROUND in self.finalizers

    @property
    def orphans_dependents(self) -> bool:
        """Whether the object is being deleted and its dependents are to be kept."""
        return self.being_deleted and ORPHAN in self.finalizers


class OwnershipGraph:
    """The nodes by uid, and the dependents of each uid, whether or not a node with it is known."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def get(self, uid: str) -> Node | None:
        """The node with this uid."""
        return self._nodes.get(uid)

    def nodes(self) -> list[Node]:
        """All nodes."""
        return list(self._nodes.values())

    def dependents(self, uid: str) -> list[Node]:
        """The nodes with an owner reference to this uid."""
        return [self._nodes[dependent] for dependent in self._dependents.get(uid, ())]

    def put(self, node: Node) -> Node | None:
        """Store a node and return what it replaces."""
        old = self.remove(node.uid)
        self._nodes[node.uid] = node
        for owner in node.owners:
            self._dependents.setdefault(owner.uid, {})[node.uid] = None
        return old

    def remove(self, uid: str) -> Node | None:
        """Forget a node and return it."""
        node = self._nodes.pop(uid, None)
        for owner in node.owners if node is not None else ():
            dependents = self._dependents[owner.uid]
            dependents.pop(uid, None)
            if not dependents:
                del self._dependents[owner.uid]
        return node
