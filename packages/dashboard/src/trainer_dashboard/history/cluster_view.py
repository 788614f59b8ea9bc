"""What the recorder sees of a cluster: TrainJobs, what is made for them, and sweeps."""

from __future__ import annotations

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.jobset_pods import PODS_BY_JOBSET, made_by_jobsets
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.deploying.transforms import bounded_cache
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import Client
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.objects import Object, ObjectKey, mapping_at
from trainer.kube.resource import EVENTS, PODS, Resource
from trainer.kube.selection import Selection
from trainer.progress.primary import is_made_of
from trainer.workloads import JOBSETS
from trainer.workloads.related_events import involved_names

_SYNC_SECONDS = 30.0
"""How long to wait for what a recorder does without, such as where it may not watch pods."""


class ClusterView:
    """Informers of one namespace, or of all.

    Args:
        client: its TrainJobs are converted to v2alpha1.
        clock: for pauses.
        namespace: None for all.
        optimization_jobs: as the cluster serves them.
    """

    def __init__(self, client: Client, clock: Clock, namespace: str | None, optimization_jobs: Resource) -> None:
        self._clock = clock
        self._cache = bounded_cache(client, clock)
        where = Selection(namespace)
        self.jobs = self._cache.informer(TRAIN_JOBS, where)
        self.jobsets = self._cache.informer(JOBSETS, where, optional=True)
        self.pods = self._cache.informer(PODS, Selection(namespace, label_selector=JOBSET_NAME))
        self.pods.add_index(PODS_BY_JOBSET, made_by_jobsets)
        self.sweeps = self._cache.informer(optimization_jobs, where, optional=True)
        self.events = self._cache.informer(EVENTS, where)
        self._runtimes = {
            CLUSTER_TRAINING_RUNTIMES.kind: self._cache.informer(CLUSTER_TRAINING_RUNTIMES),
            TRAINING_RUNTIMES.kind: self._cache.informer(TRAINING_RUNTIMES, where),
        }

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._cache.run()

    async def wait_for_sync(self) -> list[str]:
        """Wait until TrainJobs are known, and for the rest if it comes; returns what cannot be seen, and why."""
        await self.jobs.wait_for_sync()
        # Sweeps come whenever they can be read, and are late where the API server does not serve them.
        awaited = [informer for informer in self._cache.informers if informer is not self.sweeps]
        async with move_on_after(self._clock, _SYNC_SECONDS):
            for informer in awaited:
                await informer.wait_for_sync()
        return [informer.problem for informer in awaited if not informer.has_synced and informer.problem]

    def jobset_of(self, job: CachedObject) -> CachedObject | None:
        """The JobSet that a TrainJob controls."""
        found = self.jobsets.lister.peek(job.key)
        is_its_own = found is not None and found.controller is not None and found.controller.uid == job.uid
        return found if is_its_own else None

    def pods_of(self, key: ObjectKey, jobset: Object) -> list[Object]:
        """The pods of a JobSet, which may be gone by now."""
        return [pod for pod in self.pods.lister.by_index(PODS_BY_JOBSET, str(key)) if is_made_of(jobset, pod)]

    def runtime_of(self, job: CachedObject) -> CachedObject | None:
        """The runtime that a TrainJob refers to, as it is now."""
        reference = mapping_at(job.get("spec"), "runtimeRef")
        kind = str(reference.get("kind") or CLUSTER_TRAINING_RUNTIMES.kind)
        runtimes = self._runtimes.get(kind)
        if runtimes is None:
            return None
        namespace = job.key.namespace if kind == TRAINING_RUNTIMES.kind else ""
        return runtimes.lister.peek(ObjectKey(namespace, str(reference.get("name") or "")))

    def job_about(self, event: CachedObject) -> CachedObject | None:
        """The TrainJob that an event is about, by itself or by what was made for it: the one whose name fits best."""
        jobs = (self.jobs.lister.peek(ObjectKey(event.key.namespace, name)) for name in involved_names(event))
        return next((job for job in jobs if job is not None), None)
