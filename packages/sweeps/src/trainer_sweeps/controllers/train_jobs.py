"""Reads, creates, suspends and resumes the TrainJobs of sweeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from trainer.api.optimization import HELD, PRUNED, SWEEP_LABEL
from trainer.api.trainjob import TRAIN_JOBS
from trainer.explain.decision import set_suspend
from trainer.kube.cache.store import CONTROLLER_UID
from trainer.kube.client import Client
from trainer.kube.errors import AlreadyExistsError, ForbiddenError, KubeError, NotFoundError
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    is_being_deleted,
    is_controlled_by,
    key_of,
    mapping_at,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from trainer.kube.selection import Selection
from trainer.v1alpha1.discovery import Version
from trainer_sweeps.controllers.sweep import Sweep
from trainer_sweeps.trials.train_job import is_queued, train_job_of

FIELD_MANAGER: Final = "trainer-sweeps"
"""Field manager of all that is written, and component of the events about conditions."""

log = get_logger(__name__)


class TakenNameError(KubeError):
    """The TrainJob of a trial would have the name of another one, which is left alone. The work queue retries."""


class TrainJobs:
    """The TrainJobs of all sweeps.

    Args:
        manager: has the client and the cache.
        namespace: the only one that is looked at; None for all.
        version: of the TrainJobs that the cluster serves.
    """

    def __init__(self, manager: Manager, namespace: str | None, version: Version) -> None:
        self._client: Client = manager.client
        self._lister = manager.informer(TRAIN_JOBS, Selection(namespace)).lister
        self._version = version

    def cached(self, obj: Object) -> list[Object]:
        """The TrainJobs that the OptimizationJob controls, by the cache."""
        return [*self._lister.by_index(CONTROLLER_UID, uid_of(obj))]

    async def live(self, obj: Object, cached: Iterable[Object]) -> list[Object]:
        """The TrainJobs of the OptimizationJob, by the API server: no trial is missing.

        A cache may lack what the process before has created; the list lacks those whose label somebody has removed.
        """
        selection = Selection(namespace_of(obj), label_selector=f"{SWEEP_LABEL}={name_of(obj)}")
        listed = (await self._client.list(TRAIN_JOBS, selection)).items
        names = {name_of(each) for each in listed}
        others = [await self._find(each) for each in cached if name_of(each) not in names]
        return [*listed, *(each for each in others if each is not None)]

    async def create(self, sweep: Sweep, number: int, parameters: Mapping[str, str]) -> Object | None:
        """Create the TrainJob of a trial.

        Returns:
            The TrainJob; None where another one of that name is about to go.

        Raises:
            TakenNameError: somebody else has a TrainJob of that name.
            KubeError: the API server refuses it.
        """
        wanted = train_job_of(sweep.stored, sweep.spec, number, parameters, self._version)
        try:
            return await self._client.create(TRAIN_JOBS, wanted, field_manager=FIELD_MANAGER)
        except AlreadyExistsError:
            existing = await self._find(wanted)
        if existing is None:
            return None
        if is_controlled_by(existing, sweep.stored):
            return existing  # without the label, which somebody has removed
        if is_being_deleted(existing) or _is_of_earlier_sweep(existing, sweep.stored):
            return None
        raise TakenNameError(
            f"TrainJob {key_of(existing)} exists and does not belong to this OptimizationJob: delete it, or give the "
            "OptimizationJob another name"
        )

    async def prune(self, train_job: Object, reason: str) -> None:
        """Stop a trial for good; once that is known, `stay_pruned` follows.

        Raises:
            ConflictError: it has changed since it was read, and may have ended.
            KubeError: the API server refuses it.
        """
        version = {"resourceVersion": resource_version_of(train_job)}
        await self._patch(train_job, suspend=True, annotation=(PRUNED, reason), metadata=version)

    async def stay_pruned(self, train_job: Object) -> None:
        """Have Kueue not start a trial again that was stopped, and stop one that somebody has marked by hand."""
        await self._suspend_workload(train_job, suspend=True)
        if mapping_at(train_job, "spec").get("suspend") is not True:
            await self._patch(train_job, suspend=True)

    async def hold(self, train_job: Object) -> None:
        """Suspend a trial with its sweep."""
        await self._suspend_workload(train_job, suspend=True)
        await self._patch(train_job, suspend=True, annotation=(HELD, "true"))

    async def release(self, train_job: Object) -> None:
        """Resume a trial that was suspended with its sweep; one in a queue starts when that admits it."""
        is_activated = await self._suspend_workload(train_job, suspend=False)
        await self._patch(train_job, suspend=None if is_activated else False, annotation=(HELD, None))

    async def _find(self, wanted: Object) -> Object | None:
        try:
            return await self._client.get(TRAIN_JOBS, name_of(wanted), namespace_of(wanted))
        except NotFoundError:
            return None

    async def _patch(
        self,
        train_job: Object,
        *,
        suspend: bool | None,
        annotation: tuple[str, str | None] | None = None,
        metadata: Object | None = None,
    ) -> None:
        body: Object = {"metadata": {"uid": uid_of(train_job)} | (metadata or {})}
        if annotation is not None:
            body["metadata"]["annotations"] = dict([annotation])
        body |= {} if suspend is None else {"spec": {"suspend": suspend}}
        try:
            await self._client.patch(
                TRAIN_JOBS, name_of(train_job), body, namespace_of(train_job), field_manager=FIELD_MANAGER
            )
        except NotFoundError:
            log.info("left out a trial, it is gone", train_job=name_of(train_job))

    async def _suspend_workload(self, train_job: Object, *, suspend: bool) -> bool:
        """Deactivate or activate the Workload of a trial in a queue: Kueue goes by that, whatever the TrainJob says.

        Returns:
            Whether it was done; not for a trial in no queue, nor without the right.
        """
        if not is_queued(train_job):
            return False
        try:
            await set_suspend(self._client, train_job, suspend=suspend, field_manager=FIELD_MANAGER)
        except ForbiddenError as error:
            log.warning("could not change Workload", train_job=name_of(train_job), suspend=suspend, error=str(error))
            return False
        except NotFoundError:
            log.info("left out a trial, it is gone", train_job=name_of(train_job))
        return True


def _is_of_earlier_sweep(existing: Object, obj: Object) -> bool:
    """Whether it belongs to a deleted OptimizationJob of this name, so that the garbage collector deletes it."""
    owners = [each for each in existing["metadata"].get("ownerReferences") or [] if each.get("controller")]
    return any((each.get("kind"), each.get("name")) == (obj["kind"], name_of(obj)) for each in owners)
