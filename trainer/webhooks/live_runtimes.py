"""Finds runtimes for admission, also those that the cache does not have yet."""

from __future__ import annotations

from trainer.api.trainingruntime import Runtime
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionType
from trainer.framework.runtimes.alternatives import Alternatives
from trainer.framework.runtimes.default_gang import NO_GANG, DefaultGang
from trainer.framework.runtimes.runtimes import (
    RuntimeNotFoundError,
    Runtimes,
    open_snapshot,
    read_runtime,
    runtime_place,
    snapshot_key,
)
from trainer.framework.status.status import Conditions
from trainer.kube.client import Client
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import Object, ObjectKey, controller_of
from trainer.kube.resource import CONFIG_MAPS, Resource


class LiveRuntimes:
    """A `RuntimeSource` that reads the cache, and from the API server what the cache does not have yet.

    People apply a runtime and a TrainJob together, and webhooks are served before the caches have synced. `gang` is
    that of the cached runtimes; default: none.
    """

    def __init__(self, cached: Runtimes, client: Client, gang: DefaultGang = NO_GANG) -> None:
        self._cached = cached
        self._client = client
        self._gang = gang

    async def of(self, train_job: TrainJob) -> Runtime:
        """See `RuntimeSource.of`."""
        built_on, is_built = _digest(train_job), Conditions.of(train_job.status).is_true(ConditionType.CREATED)
        try:
            found = await self._cached.find(train_job, built_on=built_on, is_built=is_built)
        except RuntimeNotFoundError as error:
            kept = await self._snapshot(train_job) if is_built else None
            return kept or await self._live(train_job, error.present, NO_GANG if is_built else self._gang)
        if not is_built or found.is_snapshot or (built_on and found.digest == built_on):
            return found.runtime
        return await self._snapshot(train_job) or found.runtime

    async def _snapshot(self, train_job: TrainJob) -> Runtime | None:
        """The snapshot that a TrainJob was built on."""
        snapshot = await self._get(CONFIG_MAPS, snapshot_key(train_job))
        owner = controller_of(snapshot) if snapshot is not None else None
        if snapshot is None or owner is None or owner.get("uid") != train_job.metadata.uid:
            return None
        return read_runtime(*open_snapshot(snapshot, _digest(train_job)))

    async def _live(self, train_job: TrainJob, present: Alternatives, gang: DefaultGang) -> Runtime:
        """The runtime itself, with the gang.

        A request may be forged in the name of any namespace, so the error does not list its runtimes; the condition of
        the TrainJob does.
        """
        resource, key = runtime_place(train_job)
        found = await self._get(resource, key)
        if found is None:
            shown = present.without_names() if resource.namespaced else present
            raise RuntimeNotFoundError(resource.kind, key, shown)
        return read_runtime(resource, gang.applied(found))

    async def _get(self, resource: Resource, key: ObjectKey) -> Object | None:
        try:
            return await self._client.get(resource, key.name, key.namespace or None)
        except NotFoundError:
            return None


def _digest(train_job: TrainJob) -> str:
    return (train_job.status and train_job.status.runtime_digest) or ""
