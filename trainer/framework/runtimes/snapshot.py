"""Runtime snapshots: copies of the runtimes that TrainJobs were first built on, so that later changes never reach them.

The ConfigMap `<job>-runtime-snapshot` is immutable and belongs to the TrainJob. It is taken when the TrainJob is built
for the first time with success; from then on the TrainJob is built on it alone (reference: KEP-2599 of Kubeflow
Trainer).

People who may not run pods may write ConfigMaps, field managers and annotations included. A snapshot is therefore
proved by its digest, which is recorded where they cannot write: in the status of the TrainJob, and on what runs the
pods.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec

from trainer.api.runtime_snapshot import SNAPSHOT_KEY, SNAPSHOT_LABEL, read_text, text_of
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TrainJob
from trainer.framework.plugin_api.errors import BuildError
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.store import Lister
from trainer.kube.client import Client
from trainer.kube.errors import NotFoundError
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, ObjectKey, controller_reference, metadata_of, name_of, namespace_of
from trainer.kube.resource import CONFIG_MAPS, Resource

_RESOURCES = {resource.kind: resource for resource in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)}

RUNTIME_DIGEST = "trainer.kubeflow.org/runtime-digest"
"""Annotation of what runs pods: the digest of the runtime that it was built on."""

_KEPT = ("name", "namespace", "uid", "resourceVersion", "labels", "annotations")


def snapshot_key(train_job: TrainJob) -> ObjectKey:
    """Where the snapshot of a TrainJob is."""
    return ObjectKey(train_job.metadata.namespace or "", f"{train_job.metadata.name}-runtime-snapshot")


def digest_of(runtime: Object) -> str:
    """SHA-256 of what a TrainJob is built on: kind, name and spec of the runtime."""
    content = {"kind": runtime["kind"], "name": name_of(runtime), "spec": runtime["spec"]}
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def make_snapshot(owner: Object, resource: Resource, runtime: Object) -> Object:
    """The snapshot of a runtime for a TrainJob."""
    metadata = {name: value for name, value in metadata_of(runtime).items() if name in _KEPT}
    content = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": runtime["spec"],
    }
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {
            "name": f"{name_of(owner)}-runtime-snapshot",
            "namespace": namespace_of(owner),
            "labels": {SNAPSHOT_LABEL: name_of(owner)},
            "ownerReferences": [controller_reference(owner)],
        },
        "immutable": True,
        "data": {SNAPSHOT_KEY: text_of(content)},
    }


def open_snapshot(
    snapshot: Object, digest: str = "", *, parse: Callable[[str], Any] = read_text
) -> tuple[Resource, Object]:
    """The runtime in a snapshot, and its kind.

    It may be another than `spec.runtimeRef` names: that can change until the Jobs are known to exist.

    Args:
        snapshot: the ConfigMap.
        digest: of the runtime that it must hold. Defaults to any.
        parse: reads the text; a ValueError says that it cannot be read. Defaults to reading JSON.
    """
    try:
        runtime = parse((snapshot.get("data") or {})[SNAPSHOT_KEY])
        resource, name, spec = _RESOURCES[runtime["kind"]], name_of(runtime), runtime["spec"]
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(snapshot, "does not hold a runtime") from error
    if not isinstance(spec, dict) or not name:
        raise _broken(snapshot, "does not hold a runtime")
    if digest and digest_of(runtime) != digest:
        raise _broken(snapshot, "does not hold the runtime that the TrainJob was built on")
    return resource, runtime


def _broken(snapshot: Object, problem: str) -> BuildError:
    detail = f"Invalid value: {problem}; delete the ConfigMap, and a new snapshot of the runtime will be taken"
    return BuildError(FieldError(f"ConfigMap {name_of(snapshot)} data.{SNAPSHOT_KEY}", detail))


_REMEMBERED = 4 << 20
"""Bytes of runtimes that are remembered; the one that was needed least recently goes first."""

_json = msgspec.json.Decoder(dict)


class KeptSnapshots:
    """Opens snapshots with few requests: TrainJobs that were built on the same runtime share one answer.

    Anybody who may write ConfigMaps decides how many snapshots there are and what they hold. Therefore no content is
    cached but that of a few which TrainJobs have needed.
    """

    def __init__(self, client: Client, lister: Lister) -> None:
        self._client = client
        self._lister = lister
        self._contents: OrderedDict[str, tuple[Resource, bytes]] = OrderedDict()
        self._size = 0

    def metadata(self, train_job: TrainJob) -> CachedObject | None:
        """The metadata of the TrainJob's snapshot; None if the cache has none that belongs to it."""
        snapshot = self._lister.peek(snapshot_key(train_job))
        owner = snapshot.controller if snapshot is not None else None
        return snapshot if owner is not None and owner.uid == train_job.metadata.uid else None

    async def open(self, snapshot: CachedObject, digest: str) -> tuple[Resource, Object] | None:
        """Kind and content of the runtime in a snapshot; None if it is gone or was replaced."""
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
        """Whether a snapshot holds the runtime of this digest; each call is a request, for none vouches for another."""
        found = await self._read(snapshot)
        try:
            return found is not None and bool(open_snapshot(found, digest))
        except BuildError:
            return False

    async def _read(self, snapshot: CachedObject) -> Object | None:
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
