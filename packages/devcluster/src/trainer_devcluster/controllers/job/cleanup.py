"""What is left of Jobs: those that have outlived `ttlSecondsAfterFinished`, and pods whose Job is gone.

Nobody will count such pods, so the tracking finalizer must not hold them. Kubernetes documentation,
"TTL-after-finished".
"""

from __future__ import annotations

import structlog

from trainer.kube.cache.store import Lister
from trainer.kube.client import Client, DeleteOptions, Propagation
from trainer.kube.clock import Clock
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.reconcile import Result
from trainer.kube.errors import NotFoundError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey, controller_of, is_being_deleted, uid_of
from trainer.kube.resource import JOBS, PODS
from trainer_devcluster.controllers.job.controller import release
from trainer_devcluster.controllers.job.pods import is_tracked
from trainer_devcluster.controllers.options import time_to_live

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


class OrphanReconciler:
    """Releases tracked pods without a living Job."""

    def __init__(self, client: Client, jobs: Lister, pods: Lister) -> None:
        self._client = client
        self._jobs = jobs
        self._pods = pods

    async def reconcile(self, key: ObjectKey) -> None:
        """Release the pod if it is tracked and its Job does not exist."""
        pod = self._pods.get(key)
        if pod is not None and is_tracked(pod) and not await self._has_job(key, pod):
            await release(self._client, pod)

    async def _has_job(self, key: ObjectKey, pod: Object) -> bool:
        owner = controller_of(pod)
        if owner is None:
            return False
        if (owner["apiVersion"], owner["kind"]) != (JOBS.api_version, JOBS.kind):
            # The finalizer of a pod that something else controls is that something's business.
            return True
        cached = self._jobs.peek(ObjectKey(key.namespace, owner["name"]))
        if cached is not None and cached.uid == owner["uid"]:
            return True
        # The pod may have come to the cache before its Job: what is absent there is looked up.
        try:
            found = await self._client.get(JOBS, owner["name"], key.namespace)
        except NotFoundError:
            return False
        return uid_of(found) == str(owner["uid"])


def register(manager: Manager) -> None:
    """Have the manager run the controllers of finished Jobs and of orphaned pods."""
    client, jobs, pods = manager.client, manager.informer(JOBS).lister, manager.informer(PODS).lister
    finished = TtlReconciler(client, jobs, manager.clock)
    Controller("job-ttl", manager, finished.reconcile).reconciles(JOBS)
    orphans = OrphanReconciler(client, jobs, pods)
    controller = Controller("orphaned-pod", manager, orphans.reconcile)
    controller.reconciles(PODS, predicate=lambda _, new: new is not None and is_tracked(new))
