"""The namespace controller: empties namespaces that are being deleted, then lets them go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy

import structlog

from trainer.kube.cache.store import Lister
from trainer.kube.client import Client, DeleteOptions, Propagation, RawClient
from trainer.kube.clock import Clock, timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.reconcile import Result
from trainer.kube.errors import MethodNotAllowedError, NotFoundError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey, find_condition, is_being_deleted, metadata_of
from trainer.kube.resource import NAMESPACES, PODS, Resource
from trainer.kube.selection import Selection
from trainer_devcluster.controllers.options import ControllerOptions
from trainer_devcluster.controllers.served_resources import served_resources

log = structlog.get_logger(__name__)
_NO_PROBLEMS = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)


class NamespaceReconciler:
    """Deletes the content of namespaces and their finalizer."""

    def __init__(
        self, client: Client, raw_client: RawClient, namespaces: Lister, *, clock: Clock, options: ControllerOptions
    ) -> None:
        self._client = client
        self._raw_client = raw_client
        self._namespaces = namespaces
        self._clock = clock
        self._options = options

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Delete what is in the namespace, pods before all else; once nothing is left, finish its deletion."""
        namespace = self._namespaces.get(key)
        if namespace is None or not is_being_deleted(namespace) or not namespace["spec"].get("finalizers"):
            return None
        remaining = await self._empty_all(key.name)
        namespace = await self._update_conditions(namespace, remaining)
        if any(remaining.values()):
            log.debug("waiting for content to go", objects=sum(map(len, remaining.values())))
            return Result(requeue_after=self._options.namespace_poll)
        await self._finalize(namespace)
        return None

    async def _empty_all(self, namespace: str) -> dict[Resource, list[Object]]:
        """Delete everything; returns what is left."""
        pods = await self._empty(PODS, namespace)
        if pods:
            # What pods use, such as their network policies and accounts, stays as long as they do (KEP-5080).
            return {PODS: pods}
        served = await served_resources(self._raw_client)
        return {entry: await self._empty(entry, namespace) for entry in served if entry.namespaced}

    async def _empty(self, resource: Resource, namespace: str) -> list[Object]:
        """Delete the objects of one resource; returns those that are left."""
        selection = Selection(namespace=namespace)
        options = DeleteOptions(propagation=Propagation.BACKGROUND)
        try:
            if not (await self._client.list(resource, selection)).items:
                return []
            await self._client.delete_collection(resource, selection, options)
            return (await self._client.list(resource, selection)).items
        except (NotFoundError, MethodNotAllowedError):
            # The resource went with its definition while we looked, or does not support it.
            return []

    async def _update_conditions(self, namespace: Object, remaining: dict[Resource, list[Object]]) -> Object:
        """Write down what is in the way; returns the namespace as it is stored."""
        before = namespace.get("status") or {}
        status = with_conditions(before, remaining, timestamp(self._clock.now()))
        if status == before:
            return namespace
        return await self._client.update(NAMESPACES, {**namespace, "status": status}, subresource="status")

    async def _finalize(self, namespace: Object) -> None:
        finalizers = [name for name in namespace["spec"]["finalizers"] if name != "kubernetes"]
        try:
            await self._client.update(
                NAMESPACES, {**namespace, "spec": {"finalizers": finalizers}}, subresource="finalize"
            )
        except NotFoundError:
            return
        log.info("emptied namespace", namespace=namespace["metadata"]["name"])


def register(manager: Manager, client: RawClient, options: ControllerOptions) -> None:
    """Have the manager run the namespace controller."""
    namespaces = manager.informer(NAMESPACES).lister
    reconciler = NamespaceReconciler(manager.client, client, namespaces, clock=manager.clock, options=options)
    Controller("namespace", manager, reconciler.reconcile).reconciles(NAMESPACES)


def with_conditions(status: Object, remaining: Mapping[Resource, Sequence[Object]], now: str) -> Object:
    """The status of a namespace in which these objects are left; equal to the given one when nothing is new.

    Args:
        status: the present status.
        remaining: what is left, by resource.
        now: the time of changes.
    """
    updated: Object = deepcopy(status)
    for kind, reason, message in _NO_PROBLEMS:
        _set(updated, kind, is_true=False, reason=reason, message=message, now=now)
    numbers = sorted(
        f"{resource.plural}.{resource.group} has {len(objects)} resource instances"
        for resource, objects in remaining.items()
        if objects
    )
    finalizers = Counter(
        name for objects in remaining.values() for obj in objects for name in metadata_of(obj).get("finalizers") or []
    )
    holding = sorted(f"{name} in {number} resource instances" for name, number in finalizers.items())
    _set(
        updated,
        "NamespaceContentRemaining",
        is_true=bool(numbers),
        reason="SomeResourcesRemain" if numbers else "ContentRemoved",
        message=f"Some resources are remaining: {', '.join(numbers)}"
        if numbers
        else "All content successfully removed",
        now=now,
    )
    _set(
        updated,
        "NamespaceFinalizersRemaining",
        is_true=bool(holding),
        reason="SomeFinalizersRemain" if holding else "ContentHasNoFinalizers",
        message=f"Some content in the namespace has finalizers remaining: {', '.join(holding)}"
        if holding
        else "All content-preserving finalizers finished",
        now=now,
    )
    return updated


def _set(status: Object, kind: str, *, is_true: bool, reason: str, message: str, now: str) -> None:
    condition = {"type": kind, "status": "True" if is_true else "False", "reason": reason, "message": message}
    present = find_condition({"status": status}, kind)
    if present is None:
        status.setdefault("conditions", []).append({**condition, "lastTransitionTime": now})
    elif not condition.items() <= present.items():
        present |= {**condition, "lastTransitionTime": now}
