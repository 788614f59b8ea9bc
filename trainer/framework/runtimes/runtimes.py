"""Which runtime a TrainJob builds on, the live one or a snapshot, and which TrainJobs build on a runtime.

A snapshot is a copy of the runtime that a TrainJob was first built on, so that later changes never reach it. The
ConfigMap `<job>-runtime-snapshot` is immutable and belongs to the TrainJob. It is taken when the TrainJob is built for
the first time with success; from then on the TrainJob is built on it alone (reference: KEP-2599 of Kubeflow Trainer).

People who may not run pods may write ConfigMaps, field managers and annotations included. A snapshot is therefore
proved by its digest, which is recorded where they cannot write: in the status of the TrainJob, and on what runs the
pods.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import msgspec

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.runtime_snapshot import SNAPSHOT_KEY, SNAPSHOT_LABEL, read_text, text_of
from trainer.api.trainingruntime import (
    CLUSTER_TRAINING_RUNTIMES,
    TRAINING_RUNTIMES,
    ClusterTrainingRuntime,
    Runtime,
    TrainingRuntime,
)
from trainer.api.trainjob import TrainJob
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.runtimes.alternatives import Alternatives, alternatives
from trainer.framework.runtimes.default_gang import NO_GANG, DefaultGang
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.informer import Informer
from trainer.kube.cache.store import Lister
from trainer.kube.client import Client
from trainer.kube.errors import NotFoundError
from trainer.kube.field_errors import FieldError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey, controller_reference, metadata_of, name_of, namespace_of
from trainer.kube.resource import CONFIG_MAPS, Resource
from trainer.kube.selection import Selection

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


_MOST_KEPT = 4 << 20
"""Bytes of runtimes that are kept; the one that was needed least recently goes first."""

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
        while self._size > _MOST_KEPT and len(self._contents) > 1:
            _, (_, oldest) = self._contents.popitem(last=False)
            self._size -= len(oldest)


_INDEX = "runtime"

_Form: TypeAlias = tuple[str, str, str]
"""uid and resourceVersion of a runtime, and the gang that is applied to it."""

_REMEMBERED = 4096
"""Forms of runtimes whose digests are remembered."""
_READ = 64
"""Forms of runtimes that are kept as models."""
_LARGEST_READ = 64 * 1024
"""Bytes of JSON of a runtime that is kept as a model, which takes about ten times as much memory."""


class RuntimeSource(Protocol):
    """Where admission reads runtimes: from a cluster, or from files."""

    async def of(self, train_job: TrainJob) -> Runtime:
        """Find the runtime that the TrainJob builds on.

        Raises:
            RuntimeNotFoundError: there is no such runtime (yet).
            BuildError: it cannot be read.
        """


def runtime_place(train_job: TrainJob) -> tuple[Resource, ObjectKey]:
    """Kind and key of the runtime that `spec.runtimeRef` names."""
    ref = train_job.spec.runtime_ref
    return place_of(ref.kind, train_job.metadata.namespace or "", ref.name)


def place_of(kind: str, namespace: str, name: str) -> tuple[Resource, ObjectKey]:
    """Kind and key of the runtime to which a TrainJob in this namespace refers."""
    if kind == CLUSTER_TRAINING_RUNTIMES.kind:
        return CLUSTER_TRAINING_RUNTIMES, ObjectKey("", name)
    return TRAINING_RUNTIMES, ObjectKey(namespace, name)


def other_place(train_job: TrainJob) -> tuple[Resource, ObjectKey]:
    """Kind and key of a runtime with the name in `spec.runtimeRef`, but of the other kind."""
    resource, key = runtime_place(train_job)
    if resource is CLUSTER_TRAINING_RUNTIMES:
        return TRAINING_RUNTIMES, ObjectKey(train_job.metadata.namespace or "", key.name)
    return CLUSTER_TRAINING_RUNTIMES, ObjectKey("", key.name)


def read_runtime(resource: Resource, obj: Mapping[str, object]) -> Runtime:
    """A runtime as a model.

    Raises:
        BuildError: it does not fit its schema, or is larger than its schema now allows.
    """
    model: type[Runtime] = ClusterTrainingRuntime if resource == CLUSTER_TRAINING_RUNTIMES else TrainingRuntime
    try:
        runtime = model.from_object(obj)
        model.check_bounds(obj)
    except InvalidObjectError as error:
        prefix = error.subject.replace(" ", "/", 1)
        wrong = [FieldError(f"{prefix} {e.field}", e.message, e.reason) for e in error.errors]
        raise BuildError(*wrong) from error
    return runtime


@dataclass(frozen=True, slots=True)
class FoundRuntime:
    """The runtime that a TrainJob builds on."""

    runtime: Runtime
    resource: Resource
    object: Object
    """The runtime as it is stored; it is shared, as `runtime` is, so nobody may change it."""
    is_snapshot: bool
    """Whether the TrainJob has a snapshot of it; otherwise it is the live runtime, of which there is no snapshot yet.
    """
    digest: str = ""
    """See `digest_of`. Defaults to none."""
    outdated_snapshot: CachedObject | None = None
    """Metadata of a snapshot of which nothing was built, to be replaced by one of this runtime. Defaults to none."""
    is_former: bool = False
    """Whether `spec.runtimeRef` has been changed to another since the Jobs were created. Defaults to no."""


class Runtimes:
    """The cached runtimes and the snapshots, and an index of TrainJobs by runtime.

    `gang` is applied to the runtimes of TrainJobs that are not built yet; default: to none.
    """

    def __init__(
        self, manager: Manager, train_jobs: Informer, namespace: str | None, gang: DefaultGang = NO_GANG
    ) -> None:
        self._gang = gang
        self._train_jobs = train_jobs.lister
        train_jobs.add_index(_INDEX, _index_values)
        self.snapshots = Selection(namespace, label_selector=SNAPSHOT_LABEL, metadata_only=True)
        self._snapshots = KeptSnapshots(manager.api_reader, manager.informer(CONFIG_MAPS, self.snapshots).lister)
        self._listers = {
            TRAINING_RUNTIMES: manager.informer(TRAINING_RUNTIMES, Selection(namespace)).lister,
            CLUSTER_TRAINING_RUNTIMES: manager.informer(CLUSTER_TRAINING_RUNTIMES).lister,
        }
        self._digests: BoundedDict[_Form, str] = BoundedDict(_REMEMBERED)
        self._read: BoundedDict[_Form, tuple[Object, Runtime]] = BoundedDict(_READ)

    async def find(self, train_job: TrainJob, *, built_on: str = "", is_built: bool = False) -> FoundRuntime:
        """The runtime that the TrainJob was built on, or the live one if it was not built or has no snapshot.

        Args:
            train_job: the TrainJob.
            built_on: the recorded digest of what it was built on; default: nothing is recorded.
            is_built: whether the object that runs its pods exists. If not, a snapshot without a recorded digest
                must agree with the runtime of today.

        Raises:
            RuntimeNotFoundError: there is no such runtime (yet).
            BuildError: it cannot be read.
            KubeError: the API server did not return the snapshot.
        """
        resource, key = runtime_place(train_job)
        snapshot = self._snapshots.metadata(train_job)
        live = self._listers[resource].peek(key)
        gang = self._gang_of(live, built_on) if built_on or is_built else self._gang.source
        digest = "" if live is None else self._digest(live, gang)
        if snapshot is not None and (live is None or digest != built_on) and (built_on or is_built):
            kept = await self._snapshots.open(snapshot, built_on)
            if kept is not None:
                return _found(kept, (resource, key.name), built_on or digest_of(kept[1]))
            snapshot = None
        if live is None:
            present = None if built_on or is_built else self._present(train_job, resource, key)
            raise RuntimeNotFoundError(resource.kind, key, present)
        is_kept = snapshot is not None and (digest == built_on or await self._snapshots.holds(snapshot, digest))
        outdated = None if is_kept else snapshot
        obj, runtime = self._model(resource, live, gang)
        return FoundRuntime(runtime, resource, obj, is_kept, digest, outdated)

    def _gang_of(self, live: CachedObject | None, built_on: str) -> str:
        """The gang that was applied to a runtime for a TrainJob that was built on it; none where that is not known."""
        if live is None or not built_on:
            return ""
        return next((gang for gang in self._gang.sources if self._digest(live, gang) == built_on), "")

    def _digest(self, runtime: CachedObject, gang: str) -> str:
        form = runtime.uid, runtime.resource_version, gang
        digest = self._digests.get(form)
        if digest is None:
            digest = digest_of(self._gang.applied(runtime.decode(), gang))
            self._digests[form] = digest
        return digest

    def _model(self, resource: Resource, live: CachedObject, gang: str) -> tuple[Object, Runtime]:
        """The object and its model, which all TrainJobs of this version of the runtime and this gang share.

        Raises:
            BuildError: see `read_runtime`.
        """
        form = live.uid, live.resource_version, gang
        read = self._read.get(form)
        if read is None:
            obj = self._gang.applied(live.decode(), gang)
            read = obj, read_runtime(resource, obj)
            if len(msgspec.json.encode(obj)) <= _LARGEST_READ:
                self._read[form] = read
        return read

    def _present(self, train_job: TrainJob, resource: Resource, missing: ObjectKey) -> Alternatives:
        other, key = other_place(train_job)
        is_other = self._listers[other].peek(key) is not None
        names = (each.name for each in self._listers[resource].keys(missing.namespace or None))
        return alternatives(missing.name, names, other.kind if is_other else "")

    def train_jobs_of(self, runtime: CachedObject) -> Iterable[ObjectKey]:
        """The TrainJobs that name a runtime."""
        return self._train_jobs.keys_by_index(_INDEX, _index_value(runtime["kind"], runtime.key))


def _found(kept: tuple[Resource, Object], referred: tuple[Resource, str], digest: str) -> FoundRuntime:
    """The runtime in a snapshot; `referred` is the one that `spec.runtimeRef` names now."""
    is_former = (kept[0], name_of(kept[1])) != referred
    runtime = read_runtime(*kept)
    return FoundRuntime(runtime, *kept, is_snapshot=True, digest=digest, is_former=is_former)


def _index_values(train_job: CachedObject) -> list[str]:
    ref = (train_job.get("spec") or {}).get("runtimeRef")
    if not isinstance(ref, dict):  # an older definition may have let it pass
        return []
    kind = ref.get("kind") or CLUSTER_TRAINING_RUNTIMES.kind
    resource, key = place_of(kind, train_job.key.namespace, ref.get("name") or "")
    return [_index_value(resource.kind, key)]


def _index_value(kind: str, runtime: ObjectKey) -> str:
    return f"{kind} {runtime}"


class RuntimeNotFoundError(BuildError):
    """The runtime of a TrainJob does not exist; the TrainJob is built as soon as it does.

    Args:
        kind: of the runtime.
        key: its namespace, "" for a ClusterTrainingRuntime, and its name.
        present: what the TrainJob can name instead. None when it has been built, so that its runtimeRef cannot change.
    """

    def __init__(self, kind: str, key: ObjectKey, present: Alternatives | None = None) -> None:
        self.kind = kind
        self.key = key
        self.present = present or Alternatives()
        place = f" in namespace {key.namespace}" if key.namespace else ""
        remedy = f"create it, or change spec.runtimeRef{present.hint(key.name)}" if present else "create it again"
        problem = f'Not found: "{key.name}": there is no {kind} of this name{place}; {remedy}'
        super().__init__(FieldError("spec.runtimeRef.name", problem, "FieldValueNotFound"))
