"""Which runtime a TrainJob builds on, and which TrainJobs build on a runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.runtime_snapshot import SNAPSHOT_LABEL
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
from trainer.framework.runtimes.snapshot import KeptSnapshots, digest_of
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.informer import Informer
from trainer.kube.field_errors import FieldError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.resource import CONFIG_MAPS, Resource
from trainer.kube.selection import Selection

_INDEX = "runtime"

_REMEMBERED = 1024
"""Versions of runtimes whose digests are remembered."""
_READ = 64
"""Versions of runtimes that are kept as models."""
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
    """The cached runtimes and the snapshots, and an index of TrainJobs by runtime."""

    def __init__(self, manager: Manager, train_jobs: Informer, namespace: str | None) -> None:
        self._train_jobs = train_jobs.lister
        train_jobs.add_index(_INDEX, _index_values)
        self.snapshots = Selection(namespace, label_selector=SNAPSHOT_LABEL, metadata_only=True)
        self._snapshots = KeptSnapshots(manager.api_reader, manager.informer(CONFIG_MAPS, self.snapshots).lister)
        self._listers = {
            TRAINING_RUNTIMES: manager.informer(TRAINING_RUNTIMES, Selection(namespace)).lister,
            CLUSTER_TRAINING_RUNTIMES: manager.informer(CLUSTER_TRAINING_RUNTIMES).lister,
        }
        self._digests: BoundedDict[tuple[str, str], str] = BoundedDict(_REMEMBERED)
        self._read: BoundedDict[tuple[str, str], tuple[Object, Runtime]] = BoundedDict(_READ)

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
        digest = "" if live is None else self._digest(live)
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
        obj, runtime = self._model(resource, live)
        return FoundRuntime(runtime, resource, obj, is_kept, digest, outdated)

    def _digest(self, runtime: CachedObject) -> str:
        version = runtime.uid, runtime.resource_version
        digest = self._digests.get(version)
        if digest is None:
            digest = digest_of(runtime.decode())
            self._digests[version] = digest
        return digest

    def _model(self, resource: Resource, live: CachedObject) -> tuple[Object, Runtime]:
        """The object and its model, which all TrainJobs of this version of the runtime share.

        Raises:
            BuildError: see `read_runtime`.
        """
        version = live.uid, live.resource_version
        read = self._read.get(version)
        if read is None:
            obj = live.decode()
            read = obj, read_runtime(resource, obj)
            if len(msgspec.json.encode(obj)) <= _LARGEST_READ:
                self._read[version] = read
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
    namespace = "" if kind == CLUSTER_TRAINING_RUNTIMES.kind else train_job.key.namespace
    return [_index_value(kind, ObjectKey(namespace, ref.get("name") or ""))]


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
