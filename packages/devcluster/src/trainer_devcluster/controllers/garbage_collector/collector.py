"""The garbage collector: decides about one object at a time, from the owner references of all objects."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import structlog

from trainer.kube.client import Client, DeleteOptions, Propagation
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import (
    Object,
    ObjectKey,
    is_being_deleted,
    key_of,
    metadata_of,
    owner_references_of,
    resource_version_of,
    uid_of,
)
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
class GraphNode:
    """A node of the graph of owners and dependents."""

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
        self._nodes: dict[str, GraphNode] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def get(self, uid: str) -> GraphNode | None:
        """The node with this uid."""
        return self._nodes.get(uid)

    def nodes(self) -> list[GraphNode]:
        """All nodes."""
        return list(self._nodes.values())

    def dependents(self, uid: str) -> list[GraphNode]:
        """The nodes with an owner reference to this uid."""
        return [self._nodes[dependent] for dependent in self._dependents.get(uid, ())]

    def put(self, node: GraphNode) -> GraphNode | None:
        """Store a node and return what it replaces."""
        old = self.remove(node.uid)
        self._nodes[node.uid] = node
        for owner in node.owners:
            self._dependents.setdefault(owner.uid, {})[node.uid] = None
        return old

    def remove(self, uid: str) -> GraphNode | None:
        """Forget a node and return it."""
        node = self._nodes.pop(uid, None)
        for owner in node.owners if node is not None else ():
            dependents = self._dependents[owner.uid]
            dependents.pop(uid, None)
            if not dependents:
                del self._dependents[owner.uid]
        return node


log = structlog.get_logger(__name__)


class GarbageCollector:
    """Deletes objects whose owners are gone, and carries out foreground and orphaning deletions."""

    def __init__(self, client: Client, enqueue: Callable[[str], None]) -> None:
        """Start with an empty graph.

        Args:
            client: to look up owners, to delete and to patch.
            enqueue: has `collect` called soon with this uid.
        """
        self._client = client
        self._enqueue = enqueue
        self._graph = OwnershipGraph()
        self._deleted = RecentUids()
        self._kinds: dict[tuple[str, str], Resource] = {}
        self._ever_served: dict[tuple[str, str, str], Resource] = {}
        """By group, version and kind: where an owner can be asked for although its definition has gone meanwhile."""

    def serve(self, resources: Iterable[Resource]) -> None:
        """Take note of the served resources, by which owner references are resolved."""
        served = list(resources)
        self._kinds = {(resource.group, resource.kind): resource for resource in served}
        self._ever_served |= {(resource.group, resource.version, resource.kind): resource for resource in served}
        for node in self._graph.nodes():
            if node.owners:
                self._enqueue(node.uid)

    def observe(self, resource: Resource, obj: Mapping[str, Any]) -> None:
        """Take note of a new or changed object."""
        node = GraphNode.of(resource, obj)
        old = self._graph.put(node)
        if old == node:
            return
        if node.owners or node.being_deleted:
            self._enqueue(node.uid)
        if node.waits_for_dependents:
            self._enqueue_all(self._graph.dependents(node.uid))
        self._enqueue_waiting_owners(node)
        if old is not None:
            self._enqueue_waiting_owners(old)

    def forget(self, uid: str) -> None:
        """Take note that an object is gone."""
        self._deleted.add(uid)
        self._drop(uid)

    def forget_resource(self, resource: Resource) -> None:
        """Take note that a resource is no longer watched.

        Its objects are gone if it is no longer served; otherwise it is another version in which they are to be found.
        """
        served = (resource.group, resource.kind) in self._kinds
        for node in self._graph.nodes():
            if node.resource == resource:
                (self._drop if served else self.forget)(node.uid)

    async def collect(self, uid: str) -> None:
        """Do with one object what its owners, or its own deletion, ask for."""
        node = self._graph.get(uid)
        if node is None:
            return
        if node.orphans_dependents:
            await self._orphan_dependents(node)
        elif node.waits_for_dependents:
            await self._finish_foreground(node)
        elif node.owners and not node.being_deleted:
            await self._follow_owners(node)

    def _drop(self, uid: str) -> None:
        """Remove a node and look at all whose fate depends on it."""
        node = self._graph.remove(uid)
        self._enqueue_all(self._graph.dependents(uid))
        if node is not None:
            self._enqueue_waiting_owners(node)

    async def _follow_owners(self, node: GraphNode) -> None:
        present = [owner for owner in node.owners if await self._exists(node, owner)]
        lasting = [owner for owner in present if not self._is_waiting(owner.uid)]
        if len(lasting) == len(node.owners):
            return
        if lasting:
            await self._drop_owners(node, {owner.uid for owner in node.owners} - {owner.uid for owner in lasting})
            return
        # An owner that waits is to see this object go only after the object's own dependents.
        foreground = bool(present) and bool(self._graph.dependents(node.uid))
        await self._delete(node, Propagation.FOREGROUND if foreground else _own_policy(node))

    async def _finish_foreground(self, node: GraphNode) -> None:
        dependents = self._graph.dependents(node.uid)
        blocking = [entry for entry in dependents if any(o.uid == node.uid and o.blocks for o in entry.owners)]
        if blocking:
            self._enqueue_all(entry for entry in blocking if not entry.being_deleted)
            return
        await self._drop_finalizer(node, FOREGROUND)

    async def _orphan_dependents(self, node: GraphNode) -> None:
        for dependent in self._graph.dependents(node.uid):
            await self._drop_owners(dependent, {node.uid})
        await self._drop_finalizer(node, ORPHAN)

    async def _exists(self, node: GraphNode, owner: OwnerReference) -> bool:
        known = self._graph.get(owner.uid)
        if known is not None:
            return known.key.namespace in ("", node.key.namespace)
        if owner.uid in self._deleted:
            return False
        resource = self._resource_of(owner)
        if resource is None or (resource.namespaced and not node.key.namespace):
            # Nobody can say whether such an owner exists, so its dependents stay.
            log.warning("cannot resolve owner", kind=owner.kind, group=owner.group, dependent=str(node.key))
            return True
        found = await self._get(resource, ObjectKey(node.key.namespace if resource.namespaced else "", owner.name))
        return found is not None and uid_of(found) == owner.uid

    def _resource_of(self, owner: OwnerReference) -> Resource | None:
        served = self._kinds.get((owner.group, owner.kind))
        return served or self._ever_served.get((owner.group, owner.version, owner.kind))

    def _is_waiting(self, uid: str) -> bool:
        owner = self._graph.get(uid)
        return owner is not None and owner.waits_for_dependents

    async def _delete(self, node: GraphNode, policy: Propagation) -> None:
        options = DeleteOptions(propagation=policy, uid=node.uid)
        try:
            await self._client.delete(node.resource, node.key.name, node.key.namespace or None, options)
        except NotFoundError:
            return
        log.info("deleted dependent", kind=node.resource.kind, dependent=str(node.key), policy=policy.value)

    async def _drop_owners(self, node: GraphNode, uids: set[str]) -> None:
        obj = await self._get(node.resource, node.key)
        if obj is None or uid_of(obj) != node.uid:
            return
        kept = [reference for reference in owner_references_of(obj) if reference["uid"] not in uids]
        if len(kept) < len(owner_references_of(obj)):
            await self._patch_metadata(node, obj, {"ownerReferences": kept or None})

    async def _drop_finalizer(self, node: GraphNode, finalizer: str) -> None:
        obj = await self._get(node.resource, node.key)
        if obj is None or uid_of(obj) != node.uid:
            return
        finalizers: list[str] = metadata_of(obj).get("finalizers") or []
        if finalizer in finalizers:
            kept = [name for name in finalizers if name != finalizer]
            await self._patch_metadata(node, obj, {"finalizers": kept or None})

    async def _patch_metadata(self, node: GraphNode, obj: Object, change: Object) -> None:
        # With the resource version, since a merge patch replaces the whole list.
        body = {"metadata": {"resourceVersion": resource_version_of(obj), **change}}
        try:
            await self._client.patch(node.resource, node.key.name, body, node.key.namespace or None)
        except NotFoundError:
            return

    async def _get(self, resource: Resource, key: ObjectKey) -> Object | None:
        try:
            return await self._client.get(resource, key.name, key.namespace or None)
        except NotFoundError:
            return None

    def _enqueue_all(self, nodes: Iterable[GraphNode]) -> None:
        for node in nodes:
            self._enqueue(node.uid)

    def _enqueue_waiting_owners(self, node: GraphNode) -> None:
        for owner in node.owners:
            if self._is_waiting(owner.uid):
                self._enqueue(owner.uid)


def _own_policy(node: GraphNode) -> Propagation:
    if ORPHAN in node.finalizers:
        return Propagation.ORPHAN
    return Propagation.FOREGROUND if FOREGROUND in node.finalizers else Propagation.BACKGROUND


class RecentUids:
    """The uids that were added last; a uid is never used again, so an old one may be forgotten."""

    def __init__(self, limit: int = 1024) -> None:
        self._limit = limit
        self._uids: OrderedDict[str, None] = OrderedDict()

    def add(self, uid: str) -> None:
        """Remember a uid, forgetting the oldest when there are too many."""
        self._uids[uid] = None
        if len(self._uids) > self._limit:
            self._uids.popitem(last=False)

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids
