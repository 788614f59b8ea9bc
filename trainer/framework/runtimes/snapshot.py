"""Runtime snapshots: copies of the runtimes that TrainJobs were first built on, so that later changes never reach them.

The ConfigMap `<job>-runtime-snapshot` is immutable and belongs to the TrainJob. It is taken when the TrainJob is built
for the first time with success; from then on the TrainJob is built on it alone (reference: KEP-2599 of Kubeflow
Trainer).

People who may not run pods may write ConfigMaps, field managers and annotations included. A snapshot is therefore
proved by its digest, which is recorded where they cannot write: in the status of the TrainJob, and on what runs the
pods.

The released manager of Kubeflow Trainer keeps snapshots of the same name, as YAML and without label. They count where
it has made what runs the pods, and become snapshots of ours. In a cluster of v1alpha1 it can read ours as well.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import msgspec
from anyio.to_thread import run_sync

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.v1alpha1.client import decoded
from trainer.api.v1alpha1.decode import is_decodable, restored_runtime
from trainer.framework.plugin_api.errors import BuildError
from trainer.kube.errors import NotFoundError
from trainer.kube.field_errors import FieldError
from trainer.kube.json_text import decode_json
from trainer.kube.objects import ObjectKey, controller_of, controller_reference, metadata_of, name_of, namespace_of
from trainer.kube.resource import CONFIG_MAPS
from trainer.kubernetes_yaml import parse

if TYPE_CHECKING:
    from trainer.api.trainjob import TrainJob
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.cache.store import Lister
    from trainer.kube.client import Client
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

SNAPSHOT_LABEL = "trainer.kubeflow.org/runtime-snapshot"
"""Label of all snapshots, so that no other ConfigMap has to be cached."""

_RESOURCES = {resource.kind: resource for resource in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)}

RUNTIME_DIGEST = "trainer.kubeflow.org/runtime-digest"
"""Annotation of what runs pods: the digest of the runtime that it was built on."""

ADOPTED_DIGEST = "trainer.kubeflow.org/adopted-runtime-digest"
"""Annotation of what runs pods and another manager has made: the digest of the snapshot that was found with it."""

_DATA_KEY = "runtime"
_LARGE = 256 * 1024
"""Bytes; indented text may be three times as long, and a ConfigMap holds 1 MiB."""
_KEPT = ("name", "namespace", "uid", "resourceVersion", "labels", "annotations")


def snapshot_key(train_job: TrainJob) -> ObjectKey:
    """Where the snapshot of a TrainJob is."""
    return ObjectKey(train_job.metadata.namespace or "", f"{train_job.metadata.name}-runtime-snapshot")


def digest_of(runtime: Object) -> str:
    """SHA-256 of what a TrainJob is built on: kind, name and spec of the runtime."""
    content = {"kind": runtime["kind"], "name": name_of(runtime), "spec": runtime["spec"]}
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def make_snapshot(owner: Object, resource: Resource, runtime: Object) -> Object:
    """The snapshot of a runtime for a TrainJob, in the version of the runtime."""
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
        "data": {_DATA_KEY: _written(restored_runtime(content) if is_decodable(runtime) else content)},
    }


def open_snapshot(snapshot: Object, digest: str = "") -> tuple[Resource, Object]:
    """The runtime in a snapshot, and its kind.

    It may be another than `spec.runtimeRef` names: that can change until the Jobs are known to exist.
    """
    try:
        content = decode_json(_content, _text(snapshot))
    except (KeyError, TypeError, msgspec.DecodeError) as error:
        raise _broken(snapshot, "does not hold a runtime") from error
    resource, runtime = _runtime(snapshot, content)
    if digest and digest_of(runtime) != digest:
        raise _broken(snapshot, "does not hold the runtime that the TrainJob was built on")
    return resource, runtime


def open_released_snapshot(snapshot: Object) -> tuple[Resource, Object]:
    """The runtime in a snapshot of the released manager, and its kind.

    It takes 20 seconds for each MiB, so it is not for the event loop.
    """
    try:
        (content,) = parse(_text(snapshot), aliases=False)
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(snapshot, "does not hold a runtime") from error
    return _runtime(snapshot, content)


def _text(snapshot: Object) -> str:
    text: str = (snapshot.get("data") or {})[_DATA_KEY]
    return text


def _runtime(snapshot: Object, content: Any) -> tuple[Resource, Object]:
    """The runtime in the shape of the model, and its kind."""
    try:
        runtime = decoded(content)
        resource, name, spec = _RESOURCES[runtime["kind"]], name_of(runtime), runtime["spec"]
    except (KeyError, TypeError) as error:
        raise _broken(snapshot, "does not hold a runtime") from error
    if not isinstance(spec, dict) or not name:
        raise _broken(snapshot, "does not hold a runtime")
    return resource, runtime


def _written(content: Object) -> str:
    """With a line for each value, for people, unless that could be more than a ConfigMap holds."""
    encoded = msgspec.json.encode(content)
    return (encoded if len(encoded) > _LARGE else msgspec.json.format(encoded, indent=2)).decode()


def _broken(snapshot: Object, problem: str) -> BuildError:
    detail = f"Invalid value: {problem}; delete the ConfigMap, and a new snapshot of the runtime will be taken"
    return BuildError(FieldError(f"ConfigMap {name_of(snapshot)} data.{_DATA_KEY}", detail))


_REMEMBERED = 4 << 20
"""Bytes of runtimes that are remembered; the one that was needed least recently goes first."""

_json = msgspec.json.Decoder(dict)
_content = msgspec.json.Decoder(Any)


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

    async def open_released(self, train_job: TrainJob) -> tuple[Resource, Object] | None:
        """Kind and content of the runtime in the snapshot that the released manager has taken; None without one."""
        key = snapshot_key(train_job)
        try:
            found = await self._client.get(CONFIG_MAPS, key.name, key.namespace)
        except NotFoundError:
            return None
        owner = controller_of(found)
        if owner is None or owner.get("uid") != train_job.metadata.uid:
            return None
        # Those of one version of a runtime are equal.
        name = hashlib.sha256(str(found.get("data")).encode()).hexdigest()
        if name not in self._contents:
            self._remember(name, *await run_sync(open_released_snapshot, found))
        resource, content = self._contents[name]
        return resource, _json.decode(content)

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
