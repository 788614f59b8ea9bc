"""Removes the finalizer that releases of Kubeflow Trainer (Go) before v2.3 have put on runtimes.

Later releases remove it as well, used or not: TrainJobs have snapshots of their runtimes. Where nobody does, a runtime
that has it can never be deleted.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.store import Lister
from trainer.kube.client import Client
from trainer.kube.controller.controller import Controller
from trainer.kube.errors import NotFoundError
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey, metadata_of, resource_version_of
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection

FINALIZER: Final = "trainer.kubeflow.org/resource-in-use"
"""Finalizer that early releases of Kubeflow Trainer have put on runtimes in use; it is removed."""

log = get_logger(__name__)


def register_finalizer_removal(manager: Manager, namespace: str | None = None) -> None:
    """Register a controller for each kind of runtimes; `namespace` is the only one that is looked at."""
    for resource in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):
        selection = Selection(namespace if resource.namespaced else None)
        reconcile = partial(_reconcile, manager.client, resource, manager.informer(resource, selection).lister)
        controller = Controller(f"{resource.kind.lower()}-finalizer", manager, reconcile)
        controller.reconciles(resource, selection=selection, predicate=_has_finalizer)


def _has_finalizer(_old: CachedObject | None, new: CachedObject | None) -> bool:
    return new is not None and FINALIZER in _finalizers(new)


def _finalizers(runtime: Object | CachedObject) -> list[str]:
    found: list[str] = metadata_of(runtime).get("finalizers") or []
    return found


async def _reconcile(client: Client, resource: Resource, lister: Lister, key: ObjectKey) -> None:
    runtime = lister.get(key)
    if runtime is None or FINALIZER not in _finalizers(runtime):
        return
    kept = [each for each in _finalizers(runtime) if each != FINALIZER]
    # The version keeps a finalizer that somebody adds meanwhile.
    body = {"metadata": {"finalizers": kept, "resourceVersion": resource_version_of(runtime)}}
    try:
        await client.patch(resource, key.name, body, key.namespace or None)
    except NotFoundError:
        return
    log.info("removed finalizer", kind=resource.kind, runtime=str(key), finalizer=FINALIZER)
