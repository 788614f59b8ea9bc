"""Which runtime a TrainJob builds on, and which TrainJobs build on a runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import (
    CLUSTER_TRAINING_RUNTIMES,
    TRAINING_RUNTIMES,
    ClusterTrainingRuntime,
    TrainingRuntime,
)
from trainer.framework.alternatives import alternatives
from trainer.framework.errors import BuildError, RuntimeNotFoundError
from trainer.framework.snapshot import SNAPSHOT_LABEL, open_snapshot, snapshot_key
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import ObjectKey, controller_of, name_of
from trainer.kube.resource import CONFIG_MAPS
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainer.api.trainingruntime import Runtime
    from trainer.api.trainjob import TrainJob
    from trainer.framework.alternatives import Alternatives
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.cache.informer import Informer
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

_INDEX = "runtime"


class RuntimeSource(Protocol):
    """Where admission gets runtimes from: a cluster, or files."""

    async def of(self, train_job: TrainJob) -> Runtime:
        """What the TrainJob builds on.

        Raises:
            RuntimeNotFoundError: there is no such runtime (yet).
            BuildError: it cannot be read.
        """


def runtime_place(train_job: TrainJob) -> tuple[Resource, ObjectKey]:
    """Kind and key of the runtime that `spec.runtimeRef` names."""
    ref = train_job.spec.runtime_ref
    if ref.kind == CLUSTER_TRAINING_RUNTIMES.kind:
        return CLUSTER_TRAINING_RUNTIMES, ObjectKey("", ref.name)
    return TRAINING_RUNTIMES, ObjectKey(train_job.metadata.namespace or "", ref.name)


def other_place(train_job: TrainJob) -> tuple[Resource, ObjectKey]:
    """Kind and key of a runtime of the name in `spec.runtimeRef`, but of the kind that it does not say."""
    ref = train_job.spec.runtime_ref
    if ref.kind == CLUSTER_TRAINING_RUNTIMES.kind:
        return TRAINING_RUNTIMES, ObjectKey(train_job.metadata.namespace or "", ref.name)
    return CLUSTER_TRAINING_RUNTIMES, ObjectKey("", ref.name)


def read_runtime(resource: Resource, obj: Mapping[str, object]) -> Runtime:
    """A runtime as a model.

    Raises:
        BuildError: it does not fit its schema.
    """
    model: type[Runtime] = ClusterTrainingRuntime if resource == CLUSTER_TRAINING_RUNTIMES else TrainingRuntime
    try:
        return model.from_object(obj)
    except InvalidObjectError as error:
        prefix = error.subject.replace(" ", "/", 1)
        wrong = [FieldError(f"{prefix} {e.field}", e.message, e.reason) for e in error.errors]
        raise BuildError(*wrong) from error


@dataclass(frozen=True, slots=True)
class FoundRuntime:
    """What a TrainJob builds on."""

    runtime: Runtime
    resource: Resource
    object: Object
    """The runtime as it is stored."""
    is_snapshot: bool
    """Whether it comes from the snapshot of the TrainJob; otherwise it is the runtime of today."""
    outdated_snapshot: Object | None = None
    """A snapshot of which nothing was built, to be replaced by one of this runtime. Defaults to none."""
    is_former: bool = False
    """Whether `spec.runtimeRef` names another by now: it was changed when the Jobs existed already. Defaults to no."""


class Runtimes:
    """The cached runtimes and their snapshots, and an index of TrainJobs by runtime.

    Args:
        manager: provides informers.
        train_jobs: the informer that gets the index; it must not run yet.
        namespace: of TrainJobs, TrainingRuntimes and snapshots; default: all.
    """

    def __init__(self, manager: Manager, train_jobs: Informer, namespace: str | None) -> None:
        self._train_jobs = train_jobs.lister
        train_jobs.add_index(_INDEX, _index_values)
        self.snapshots = Selection(namespace, label_selector=SNAPSHOT_LABEL)
        self._snapshots = manager.informer(CONFIG_MAPS, self.snapshots).lister
        self._listers = {
            TRAINING_RUNTIMES: manager.informer(TRAINING_RUNTIMES, Selection(namespace)).lister,
            CLUSTER_TRAINING_RUNTIMES: manager.informer(CLUSTER_TRAINING_RUNTIMES).lister,
        }

    def find(self, train_job: TrainJob, *, is_built: bool = True) -> FoundRuntime:
        """The snapshot of the TrainJob if there is one, else the runtime that `spec.runtimeRef` names.

        Args:
            train_job: see there.
            is_built: whether anything exists of it. Otherwise the snapshot must agree with the runtime of today: the
                cluster may have refused what an older runtime gives, and people who may write ConfigMaps but no
                runtimes may have written it.

        Raises:
            RuntimeNotFoundError: there is no such runtime (yet).
            BuildError: it cannot be read.
        """
        resource, key = runtime_place(train_job)
        snapshot = self._snapshots.get(snapshot_key(train_job))
        owner = controller_of(snapshot) if snapshot else None
        if not snapshot or not owner or owner.get("uid") != train_job.metadata.uid:
            snapshot = None
        live = None if snapshot and is_built else self._listers[resource].get(key)
        if snapshot and (is_built or live is not None):
            kept, found = open_snapshot(snapshot)
            is_former = (kept, name_of(found)) != (resource, key.name)
            if live is None or (live.get("spec") == found["spec"] and not is_former):
                runtime = read_runtime(kept, found)
                return FoundRuntime(runtime, kept, found, is_snapshot=True, is_former=is_former)
        if live is None:
            present = None if is_built else self._present(train_job, resource, key)
            raise RuntimeNotFoundError(resource.kind, key, present)
        runtime = read_runtime(resource, live)
        return FoundRuntime(runtime, resource, live, is_snapshot=False, outdated_snapshot=snapshot)

    def _present(self, train_job: TrainJob, resource: Resource, missing: ObjectKey) -> Alternatives:
        """What the TrainJob can name instead: runtimes of the cluster, or of its own namespace."""
        other, key = other_place(train_job)
        is_other = self._listers[other].peek(key) is not None
        names = (each.name for each in self._listers[resource].keys(missing.namespace or None))
        return alternatives(missing.name, names, other.kind if is_other else "")

    def train_jobs_of(self, runtime: CachedObject) -> Iterable[ObjectKey]:
        """The TrainJobs that name a runtime."""
        return self._train_jobs.keys_by_index(_INDEX, _index_value(runtime["kind"], runtime.key))


def _index_values(train_job: CachedObject) -> list[str]:
    ref = (train_job.get("spec") or {}).get("runtimeRef")
    if not isinstance(ref, dict):  # an older definition may have let it pass
        return []
    kind = ref.get("kind") or CLUSTER_TRAINING_RUNTIMES.kind
    namespace = "" if kind == CLUSTER_TRAINING_RUNTIMES.kind else train_job.key.namespace
    return [_index_value(kind, ObjectKey(namespace, ref.get("name") or ""))]


def _index_value(kind: str, runtime: ObjectKey) -> str:
    return f"{kind} {runtime}"
