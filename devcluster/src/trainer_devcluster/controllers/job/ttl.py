"""Finished Jobs that have outlived `ttlSecondsAfterFinished` (Kubernetes documentation, "TTL-after-finished")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from trainer.kube.client import DeleteOptions, Propagation
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.reconcile import Result
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import is_being_deleted, uid_of
from trainer.kube.resource import JOBS
from trainer_devcluster.controllers.options import time_to_live

if TYPE_CHECKING:
    from trainer.kube.cache.store import Lister
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import ObjectKey

log = structlog.get_logger(__name__)


class TtlReconciler:
    """Deletes Jobs when their time to live is over."""

    def __init__(self, client: Client, jobs: Lister, clock: Clock) -> None:
        self._client = client
        self._jobs = jobs
        self._clock = clock

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Delete the Job if it is due, else come back when it is."""
        job = self._jobs.get(key)
        if job is None or is_being_deleted(job):
            return None
        remaining = time_to_live(job, ("Complete", "Failed"), self._clock.now())
        if remaining is None:
            return None
        if remaining > 0:
            return Result(requeue_after=remaining)
        options = DeleteOptions(propagation=Propagation.FOREGROUND, uid=uid_of(job))
        try:
            await self._client.delete(JOBS, key.name, key.namespace, options)
        except NotFoundError:
            return None
        log.info("deleted finished job", job=key.name)
        return None


def register(manager: Manager) -> None:
    """Have the manager run the TTL controller."""
    reconciler = TtlReconciler(manager.client, manager.informer(JOBS).lister, manager.clock)
    Controller("job-ttl", manager, reconciler.reconcile).reconciles(JOBS)
