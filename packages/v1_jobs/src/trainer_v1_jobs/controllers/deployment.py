"""Creates, changes and deletes the objects that a v1 job becomes; nothing is sent where nothing differs."""

from __future__ import annotations

from trainer.api.trainingruntime import TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.deploying.comparison import differences
from trainer.framework.deploying.deployer import FIELD_MANAGER
from trainer.kube.client import DeleteOptions
from trainer.kube.errors import KubeError, NotFoundError
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    controller_of,
    is_being_deleted,
    is_controlled_by,
    key_of,
    name_of,
    namespace_of,
    uid_of,
)
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS, Resource
from trainer.kube.selection import Selection
from trainer_v1_jobs.controllers.autoscaler import SELECTOR
from trainer_v1_jobs.controllers.children import Children, nodes_of

log = get_logger(__name__)


class TakenNameError(KubeError):
    """An object that would be created exists and belongs to somebody else; it is left alone. The work queue retries."""

    def __init__(self, resource: Resource, existing: Object, job: Object) -> None:
        super().__init__(
            f"{resource.kind} {key_of(existing)} exists and does not belong to {job['kind']} {name_of(job)}: "
            f"delete it, or give the {job['kind']} another name"
        )


class Deployment:
    """The objects of all jobs, by the caches of the manager."""

    def __init__(self, manager: Manager, namespace: str | None) -> None:
        self._client = manager.client
        everything = Selection(namespace)
        self.autoscalers = Selection(namespace, label_selector=SELECTOR)
        """Selects the autoscalers that are made here."""
        self._listers = {
            TRAIN_JOBS: manager.informer(TRAIN_JOBS, everything).lister,
            TRAINING_RUNTIMES: manager.informer(TRAINING_RUNTIMES, everything).lister,
            HORIZONTAL_POD_AUTOSCALERS: manager.informer(HORIZONTAL_POD_AUTOSCALERS, self.autoscalers).lister,
        }

    def train_job_of(self, job: Object) -> Object | None:
        """The TrainJob of a job, which may be being deleted; None if it has none."""
        return self._own(TRAIN_JOBS, job)

    async def ensure(self, job: Object, children: Children) -> bool:
        """Create what is missing; change the number of nodes of an elastic training, and its autoscaler.

        Returns:
            Whether all is there; otherwise an object of that name still goes away, such as one of an earlier run.

        Raises:
            TakenNameError: an object of that name belongs to somebody else.
            KubeError: the API server does not accept an object.
        """
        train_job = self.train_job_of(job)
        if train_job is None:
            if not await self._ensure_runtime(job, children):
                return False
            if not await self._create(TRAIN_JOBS, job, children.train_job):
                return False
        elif is_being_deleted(train_job):
            return False
        else:
            await self._resize(train_job, children)
        return await self._ensure_autoscaler(job, children.autoscaler)

    async def remove(self, job: Object) -> None:
        """Delete all that there is; the pods follow their TrainJob."""
        for resource in (HORIZONTAL_POD_AUTOSCALERS, TRAIN_JOBS, TRAINING_RUNTIMES):
            await self._delete(resource, job)

    async def remove_autoscaler(self, job: Object) -> None:
        """Delete the autoscaler if there is one."""
        await self._delete(HORIZONTAL_POD_AUTOSCALERS, job)

    async def _ensure_runtime(self, job: Object, children: Children) -> bool:
        """Whether the runtime is there; one that an earlier attempt has left, whose spec cannot change, goes first."""
        existing = self._own(TRAINING_RUNTIMES, job)
        if existing is None:
            return await self._create(TRAINING_RUNTIMES, job, children.runtime)
        if not is_being_deleted(existing) and not any(differences(children.runtime_spec, existing["spec"])):
            return True
        await self._delete(TRAINING_RUNTIMES, job)
        return False

    async def _resize(self, train_job: Object, children: Children) -> None:
        nodes = children.elastic_nodes
        if nodes is None or nodes == nodes_of(train_job):
            return
        body = {"metadata": {"uid": uid_of(train_job)}, "spec": {"trainer": {"numNodes": nodes}}}
        await self._client.patch(TRAIN_JOBS, name_of(train_job), body, namespace_of(train_job))
        log.info("changed number of nodes", nodes=nodes)

    async def _ensure_autoscaler(self, job: Object, autoscaler: Object | None) -> bool:
        if autoscaler is None:
            await self.remove_autoscaler(job)
            return True
        existing = self._own(HORIZONTAL_POD_AUTOSCALERS, job)
        if existing is not None and not any(differences(autoscaler["spec"], existing["spec"])):
            return True
        if existing is None:
            existing = await self._stored_autoscaler(job)
            if existing is None or not is_controlled_by(existing, job):
                return await self._create_at(existing, HORIZONTAL_POD_AUTOSCALERS, job, autoscaler)
        # The uid keeps the fields from an autoscaler of somebody else that has taken the name since.
        applied = autoscaler | {"metadata": autoscaler["metadata"] | {"uid": uid_of(existing)}}
        await self._client.apply(HORIZONTAL_POD_AUTOSCALERS, applied, field_manager=FIELD_MANAGER, force=True)
        log.info("applied autoscaler")
        return True

    async def _stored_autoscaler(self, job: Object) -> Object | None:
        """The autoscaler with the name of the job; the cache has only those with our label."""
        try:
            return await self._client.get(HORIZONTAL_POD_AUTOSCALERS, name_of(job), namespace_of(job))
        except NotFoundError:
            return None

    async def _create(self, resource: Resource, job: Object, obj: Object) -> bool:
        return await self._create_at(self._listers[resource].get(key_of(job)), resource, job, obj)

    async def _create_at(self, existing: Object | None, resource: Resource, job: Object, obj: Object) -> bool:
        """Create an object, unless one of that name exists and goes away; returns whether it is created."""
        if existing is not None:
            if is_being_deleted(existing) or _is_of_earlier_job(existing, job):
                return False
            raise TakenNameError(resource, existing, job)
        await self._client.create(resource, obj, field_manager=FIELD_MANAGER)
        log.info("created object", kind=resource.kind)
        return True

    async def _delete(self, resource: Resource, job: Object) -> None:
        existing = self._own(resource, job)
        if existing is None or is_being_deleted(existing):
            return
        try:
            await self._client.delete(
                resource, name_of(existing), namespace_of(existing), DeleteOptions(uid=uid_of(existing))
            )
        except NotFoundError:
            return
        log.info("deleted object", kind=resource.kind)

    def _own(self, resource: Resource, job: Object) -> Object | None:
        found = self._listers[resource].get(key_of(job))
        return found if found is not None and is_controlled_by(found, job) else None


def _is_of_earlier_job(existing: Object, job: Object) -> bool:
    """Whether an object belongs to a deleted job of the same name, so that the garbage collector deletes it."""
    owner = controller_of(existing) or {}
    same = (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) == (
        job["apiVersion"],
        job["kind"],
        name_of(job),
    )
    return same and owner.get("uid") != uid_of(job)
