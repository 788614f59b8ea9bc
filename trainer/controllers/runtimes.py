"""Which runtime a TrainJob builds on, and which TrainJobs build on a runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import (
    CLUSTER_TRAINING_RUNTIMES,
    TRAINING_RUNTIMES,
    ClusterTrainingRuntime,
    TrainingRuntime,
)
from trainer.framework.errors import BuildError
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import ObjectKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainer.api.trainingruntime import Runtime
    from trainer.api.trainjob import TrainJob
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.cache.informer import Informer
    from trainer.kube.manager.manager import Manager
    from trainer.kube.selection import Selection

_INDEX = "runtime"


class Runtimes:
    """The cached runtimes, and an index of TrainJobs by runtime.

    Args:
        manager: provides informers.
        train_jobs: the informer that gets the index; it must not run yet.
        selection: the namespace of TrainingRuntimes.
    """

    def __init__(self, manager: Manager, train_jobs: Informer, selection: Selection) -> None:
        self._train_jobs = train_jobs.lister
        train_jobs.add_index(_INDEX, _index_values)
        self._namespaced = manager.informer(TRAINING_RUNTIMES, selection).lister
        self._cluster_wide = manager.informer(CLUSTER_TRAINING_RUNTIMES).lister

    def of(self, train_job: TrainJob) -> Runtime:
        """The runtime that `spec.runtimeRef` names.

        Raises:
            BuildError: it does not exist, or cannot be read.
        """
        ref, namespace = train_job.spec.runtime_ref, train_job.metadata.namespace or ""
        try:
            if ref.kind == CLUSTER_TRAINING_RUNTIMES.kind:
                place, found = "", self._cluster_wide.get(ObjectKey("", ref.name))
                runtime: Runtime | None = ClusterTrainingRuntime.from_object(found) if found else None
            else:
                place, found = f" in namespace {namespace}", self._namespaced.get(ObjectKey(namespace, ref.name))
                runtime = TrainingRuntime.from_object(found) if found else None
        except InvalidObjectError as error:
            wrong = [FieldError(f"{ref.kind}/{ref.name} {e.field}", e.message) for e in error.errors]
            raise BuildError(*wrong) from error
        if runtime is None:
            message = f"{ref.kind} {ref.name}{place} not found; create it, or name one that exists"
            raise BuildError.at("spec.runtimeRef", message)
        return runtime

    def train_jobs_of(self, runtime: CachedObject) -> Iterable[ObjectKey]:
        """The TrainJobs that name a runtime."""
        return self._train_jobs.keys_by_index(_INDEX, _index_value(runtime["kind"], runtime.key))


def _index_values(train_job: CachedObject) -> list[str]:
    ref = (train_job.get("spec") or {}).get("runtimeRef") or {}
    kind = ref.get("kind") or CLUSTER_TRAINING_RUNTIMES.kind
    namespace = "" if kind == CLUSTER_TRAINING_RUNTIMES.kind else train_job.key.namespace
    return [_index_value(kind, ObjectKey(namespace, ref.get("name") or ""))]


def _index_value(kind: str, runtime: ObjectKey) -> str:
    return f"{kind} {runtime}"
