"""The namespace controller: empties namespaces that are being deleted, then lets them go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from trainer.devcluster.controllers.served_resources import RawClient, served_resources
from trainer.kube.client import DeleteOptions, Propagation
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.reconcile import Result
from trainer.kube.errors import MethodNotAllowedError, NotFoundError
from trainer.kube.objects import is_being_deleted
from trainer.kube.resource import NAMESPACES
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from trainer.devcluster.controllers.options import ControllerOptions
    from trainer.kube.cache.store import Lister
    from trainer.kube.client import Client
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import Object, ObjectKey
    from trainer.kube.resource import Resource

log = structlog.get_logger(__name__)


class NamespaceReconciler:
    """Deletes the content of namespaces and their finalizer."""

    def __init__(self, client: Client, raw_client: RawClient, namespaces: Lister, options: ControllerOptions) -> None:
        self._client = client
        self._raw_client = raw_client
        self._namespaces = namespaces
        self._options = options

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Delete what is in the namespace; once nothing is left, finish its deletion."""
        namespace = self._namespaces.get(key)
        if namespace is None or not is_being_deleted(namespace) or not namespace["spec"].get("finalizers"):
            return None
        remaining = 0
        for resource in await served_resources(self._raw_client):
            if resource.namespaced:
                remaining += await self._empty(resource, key.name)
        if remaining:
            log.debug("waiting for content to go", objects=remaining)
            return Result(requeue_after=self._options.namespace_poll)
        await self._finalize(namespace)
        return None

    async def _empty(self, resource: Resource, namespace: str) -> int:
        """Delete the objects of one resource; returns how many are left."""
        selection = Selection(namespace=namespace)
        options = DeleteOptions(propagation=Propagation.BACKGROUND)
        try:
            if not (await self._client.list(resource, selection)).items:
                return 0
            await self._client.delete_collection(resource, selection, options)
            return len((await self._client.list(resource, selection)).items)
        except (NotFoundError, MethodNotAllowedError):
            # The resource went with its definition while we looked, or does not support it.
            return 0

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
    reconciler = NamespaceReconciler(manager.client, client, manager.informer(NAMESPACES).lister, options)
    Controller("namespace", manager, reconciler.reconcile).reconciles(NAMESPACES)
