"""Profile: how an API version reads runtimes and TrainJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.building.order import put_in_order
from trainer.framework.building.trainer_step import apply_trainer, apply_trainer_env, mark_trainer
from trainer.framework.plugin_api.runtime_info import RuntimeInfo, upsert

if TYPE_CHECKING:
    from trainer.api.trainjob import TrainJob
    from trainer.framework.plugin_api.runtime_info import Key
    from trainer.kube.objects import Object


class Profile:
    """The profile of v2alpha1, which is KEP-2170; another version overrides what differs."""

    info: type[RuntimeInfo] = RuntimeInfo
    """What plugins get, with the answers that differ between the versions."""
    validates_builds = True
    """Whether findings of plugins keep a TrainJob from being built; otherwise they are warnings of admission."""

    def mark(self, info: RuntimeInfo) -> None:
        """Mark the pod sets that train, set the number of nodes, and order the Jobs."""
        mark_trainer(info)
        put_in_order(info)

    def apply_trainer(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Put the settings of `spec.trainer` into the pod sets that train."""
        apply_trainer(info, train_job)

    def apply_env(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Merge `spec.trainer.env` into the pod sets that train, after the plugins."""
        apply_trainer_env(info, train_job)

    def merge(self, items: list[Object], additions: list[Object], key: Key) -> None:
        """Merge what an override adds to a list: what is there keeps its place, and the rest comes last."""
        upsert(items, additions, key)


V2ALPHA1_PROFILE = Profile()
