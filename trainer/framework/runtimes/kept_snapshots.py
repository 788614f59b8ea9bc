"""Reads the snapshots of runtimes: their metadata is cached, their content is requested when it is needed."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.runtimes.snapshot import open_snapshot, snapshot_key
from trainer.kube.errors import NotFoundError
from trainer.kube.resource import CONFIG_MAPS

if TYPE_CHECKING:
    from trainer.api.trainjob import TrainJob
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.cache.store import Lister
    from trainer.kube.client import Client
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

_REMEMBERED = 4 << 20
"""Bytes of runtimes that are remembered; the one that was needed least recently goes first."""

_json = msgspec.json.Decoder(dict)


class KeptSnapshots:
    """Opens snapshots with few requests: TrainJobs that were built on the same runtime share one answer.

    Anybody who may write ConfigMaps decides how many snapshots there are and what they hold. Therefore no content is
    cached but that of a few which TrainJobs have needed.

    Args:
        client: reads the content.
        lister: of the metadata of all snapshots.
    """

    def __init__(self, client: Client, lister: Lister) -> None:
        self._client = client
        self._lister = lister
        self._contents: OrderedDict[str, tuple[Resource, bytes]] = OrderedDict()
        self._size = 0

    def metadata(self, train_job: TrainJob) -> CachedObject | None:
        """That of the snapshot of the TrainJob; None if the cache shows none that belongs to it."""
        snapshot = self._lister.peek(snapshot_key(train_job))
        owner = snapshot.controller if snapshot is not None else None
        return snapshot if owner is not None and owner.uid == train_job.metadata.uid else None

    async def open(self, snapshot: CachedObject, digest: str) -> tuple[Resource, Object] | None:
        """Kind and content of the runtime in a snapshot; None if it is gone or was replaced.

        Raises:
            BuildError: it holds something else.
            KubeError: the API server did not answer.
        """
        name = digest or f"{snapshot.uid}/{snapshot.resource_version}"
        known = self._contents.get(name)
        if known is not None:
            self._contents.move_to_end(name)
            return known[0], _json.decode(known[1])
        found = await self._read(snapshot)
        if found is None:
            return None
        resource, runtime = open_snapshot(found, digest)
        self._remember(name, resource, runtime)
        return resource, runtime

    async def holds(self, snapshot: CachedObject, digest: str) -> bool:
        """Whether a snapshot holds the runtime of this digest; each call is a request, for none vouches for another.

        Raises:
            KubeError: the API server did not answer.
        """
        found = await self._read(snapshot)
        try:
            return found is not None and bool(open_snapshot(found, digest))
        except BuildError:
            return False

    async def _read(self, snapshot: CachedObject) -> Object | None:
        """The ConfigMap; None if it is gone or was replaced."""
        try:
            found = await self._client.get(CONFIG_MAPS, snapshot.key.name, snapshot.key.namespace)
        except NotFoundError:
            return None
        return found if found["metadata"]["uid"] == snapshot.uid else None

    def _remember(self, name: str, resource: Resource, runtime: Object) -> None:
        content = msgspec.json.encode(runtime)
        self._size -= len(self._contents.pop(name, (resource, b""))[1])
        self._contents[name] = resource, content
        self._size += len(content)
        while self._size > _REMEMBERED and len(self._contents) > 1:
            _, (_, oldest) = self._contents.popitem(last=False)
            self._size -= len(oldest)
