"""Dataset and model settings of a TrainJob (KEP-2170, "The Dataset Config API" and "The Model Config API")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.upsert import by_source, upsert
from trainer.kube.field_errors import forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import StorageSettings, TrainJob
    from trainer.framework.plugin_api.runtime_info import Container, RuntimeInfo

STORAGE_URI = "STORAGE_URI"

DATASET_INITIALIZER = "dataset-initializer"
MODEL_INITIALIZER = "model-initializer"
MODEL_EXPORTER = "model-exporter"
"""Containers that fetch and export data; in the KEP they are in the replicated Jobs Initializer and Finalizer."""

_CONTAINERS = {
    "spec.datasetConfig": DATASET_INITIALIZER,
    "spec.modelConfig.input": MODEL_INITIALIZER,
    "spec.modelConfig.output": MODEL_EXPORTER,
}


@dataclass(frozen=True, slots=True)
class Storage:
    """One place that data comes from or goes to."""

    field: str
    """Where the TrainJob says so."""
    container: str
    """Name of the container that does the work."""
    settings: StorageSettings


def storages(train_job: TrainJob) -> Iterator[Storage]:
    """All places that a TrainJob names."""
    for path, settings in train_job.spec.storage_settings():
        yield Storage(path, _CONTAINERS[path], settings)


def apply_storage(info: RuntimeInfo, storage: Storage) -> None:
    """Tell the container where the data is, and give it its credentials.

    An entry `STORAGE_URI` in `env` wins over `storageUri`.

    Raises:
        BuildError: the runtime has no such container.
    """
    containers = [container for container in _containers(info) if container.name == storage.container]
    if not containers:
        detail = f"{info.runtime} has no container {storage.container}; choose a runtime that has one, or remove this"
        raise BuildError(forbidden(storage.field, detail))
    for container in containers:
        _apply(container, storage.settings)


def _containers(info: RuntimeInfo) -> Iterator[Container]:
    for pod_set in info.pod_sets:
        yield from pod_set.containers
        yield from pod_set.init_containers


def _apply(container: Container, settings: StorageSettings) -> None:
    if settings.storage_uri is not None:
        container.set_env([{"name": STORAGE_URI, "value": settings.storage_uri}])
    container.set_env(variable.to_object() for variable in settings.env or [])
    if settings.secret_ref:
        upsert(container.env_from, [{"secretRef": {"name": settings.secret_ref.name}}], by_source)
