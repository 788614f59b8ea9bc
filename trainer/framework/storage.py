"""Dataset and model settings of a TrainJob (KEP-2170, "The Dataset Config API" and "The Model Config API")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import StorageSettings, TrainJob
    from trainer.framework.runtime_info import Container, RuntimeInfo

STORAGE_URI = "STORAGE_URI"


def apply_storage_settings(info: RuntimeInfo, train_job: TrainJob) -> None:
    """Tell the containers that fetch and export data where it is, and give them their credentials.

    An entry `STORAGE_URI` in `env` wins over `storageUri`.

    Raises:
        BuildError: the runtime has no container for it.
    """
    for field, container_name, settings in _settings(train_job):
        containers = [container for container in _containers(info) if container.name == container_name]
        if not containers:
            raise BuildError.at(
                field,
                f"{info.runtime} has no container {container_name}; choose a runtime that has one, or remove {field}",
            )
        for container in containers:
            _apply(container, settings)


def _settings(train_job: TrainJob) -> Iterator[tuple[str, str, StorageSettings]]:
    spec = train_job.spec
    if spec.dataset_config:
        yield "spec.datasetConfig", "dataset-initializer", spec.dataset_config
    if spec.model_config_ and spec.model_config_.input:
        yield "spec.modelConfig.input", "model-initializer", spec.model_config_.input
    if spec.model_config_ and spec.model_config_.output:
        yield "spec.modelConfig.output", "model-exporter", spec.model_config_.output


def _containers(info: RuntimeInfo) -> Iterator[Container]:
    for pod_set in info.pod_sets:
        yield from pod_set.containers
        yield from pod_set.init_containers


def _apply(container: Container, settings: StorageSettings) -> None:
    if settings.storage_uri is not None:
        container.set_env([{"name": STORAGE_URI, "value": settings.storage_uri}])
    container.set_env(variable.to_object() for variable in settings.env or [])
    if settings.secret_ref:
        container.env_from.append({"secretRef": {"name": settings.secret_ref.name}})
