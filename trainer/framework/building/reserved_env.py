"""Environment variables that a plugin sets for the training, and that its author therefore must not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.building.overrides import container_overrides
from trainer.framework.building.trainer_step import trainer_env
from trainer.kube.field_errors import FieldError, forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from trainer.api.trainjob import TrainJob
    from trainer.framework.plugin_api.runtime_info import RuntimeInfo


def check_reserved_env(
    info: RuntimeInfo, train_job: TrainJob, reserved: AbstractSet[str], plugin: str
) -> Iterator[FieldError]:
    """Refuse variables of a TrainJob that only a plugin sets, wherever it can set them for a training container.

    Args:
        info: tells which containers train.
        train_job: may set variables of them.
        reserved: names of the variables.
        plugin: whose they are.
    """
    for path, names in _env_names(info, train_job):
        found = sorted(reserved & set(names))
        if found:
            yield forbidden(path, f"must not set {', '.join(found)}, which the {plugin} plugin sets; remove it")


def _env_names(info: RuntimeInfo, train_job: TrainJob) -> Iterator[tuple[str, list[str]]]:
    """Where a TrainJob can set variables of the training containers, and which it sets there."""
    yield "spec.trainer.env", [variable["name"] for variable in trainer_env(train_job)]
    for pod_set in info.training_pod_sets:
        for path, change in container_overrides(train_job, pod_set, pod_set.main_container):
            yield f"{path}.env", [variable.name for variable in change.env or []]
