"""Takes over the TrainJobs that Kubeflow Trainer (Go) has made, without a change to what runs.

Its snapshot of the runtime has the name of ours, but is YAML and without label, so that no cache shows it. Its JobSet
does not say which runtime it was built on. Once both are like ours, the TrainJob is like any other.
"""

from __future__ import annotations

import hashlib
from typing import Any

from anyio.to_thread import run_sync

from trainer.api.trainjob import TrainJob
from trainer.framework.deploying.deployer import FIELD_MANAGER
from trainer.framework.plugin_api.component import ADOPTED
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.plugin_context import Reader
from trainer.framework.runtimes.runtimes import (
    RUNTIME_DIGEST,
    Runtimes,
    digest_of,
    make_snapshot,
    open_snapshot,
    snapshot_key,
)
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.client import Client
from trainer.kube.errors import ConflictError, NotFoundError
from trainer.kube.field_errors import forbidden
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, ObjectKey, is_controlled_by, name_of, uid_of
from trainer.kube.resource import CONFIG_MAPS, Resource
from trainer.kubernetes_yaml import parse
from trainer.v1alpha1.client import decoded
from trainer.workloads import JOBSETS

_REMEMBERED = 8
"""Snapshots that are remembered: those of one version of a runtime are equal, and reading takes 20 seconds a MiB."""

log = get_logger(__name__)


class TakeOver:
    """Marks JobSets of the Go manager with their runtime; see `controllers.job_objects.TakeOver`."""

    def __init__(self, client: Client, reader: Reader) -> None:
        self._client = client
        self._reader = reader
        self._opened: BoundedDict[str, tuple[Resource, Object]] = BoundedDict(_REMEMBERED)

    async def __call__(self, train_job: TrainJob, owner: Object, runtimes: Runtimes) -> None:
        """Store the snapshot as one of ours, and record it on the JobSet.

        Raises:
            ConflictError: always, once that is done: the cache does not show it yet.
            BuildError: there is no snapshot and no runtime, or it cannot be read.
        """
        key = ObjectKey(train_job.metadata.namespace or "", train_job.metadata.name)
        jobset = self._reader.get(JOBSETS, key)
        if jobset is None:
            raise ConflictError(409, f"the cache does not show JobSet {key} any more")
        kept = await self._snapshot(snapshot_key(train_job), owner)
        if kept is None:  # early releases have taken none
            found = await runtimes.find(train_job, is_built=True)
            kept = found.resource, found.object
        resource, runtime = kept
        snapshot = make_snapshot(owner, resource, runtime)
        await self._client.apply(CONFIG_MAPS, snapshot, field_manager=FIELD_MANAGER, force=True)
        # As an update and not as an apply, so that no later apply removes it.
        annotations = {RUNTIME_DIGEST: digest_of(runtime), ADOPTED: "true"}
        body = {"metadata": {"uid": uid_of(jobset), "annotations": annotations}}
        await self._client.patch(JOBSETS, key.name, body, key.namespace, field_manager=FIELD_MANAGER)
        log.info("took over TrainJob", train_job=str(key), runtime=f"{resource.kind}/{name_of(runtime)}")
        raise ConflictError(409, f"the cache does not show that JobSet {key} was taken over")

    async def _snapshot(self, key: ObjectKey, owner: Object) -> tuple[Resource, Object] | None:
        """Kind and content of the runtime in the snapshot that was taken; None without one."""
        try:
            found = await self._client.get(CONFIG_MAPS, key.name, key.namespace)
        except NotFoundError:
            return None
        if not is_controlled_by(found, owner):
            raise BuildError(forbidden(f"ConfigMap {key.name}", "it belongs to somebody else; delete it"))
        name = hashlib.sha256(str(found.get("data")).encode()).hexdigest()
        opened = self._opened.get(name)
        if opened is None:
            opened = await run_sync(_open, found)
            self._opened[name] = opened
        return opened


def _open(snapshot: Object) -> tuple[Resource, Object]:
    return open_snapshot(snapshot, parse=_only_document)


def _only_document(text: str) -> Any:
    content: Any
    (content,) = parse(text, aliases=False)
    return decoded(content)
