"""Profile: how an API version reads runtimes and TrainJobs."""

from __future__ import annotations

from trainer.framework.building.order import put_in_order
from trainer.framework.building.trainer_step import apply_trainer, apply_trainer_env, mark_trainer
from trainer.framework.plugin_api.runtime_info import RuntimeInfo, upsert
from trainer.kube.field_errors import FieldError


def _mark(info: RuntimeInfo) -> None:
    mark_trainer(info)
    put_in_order(info)


class Profile:
    """The profile of v2alpha1, which is KEP-2170; another version overrides what differs."""

    info: type[RuntimeInfo] = RuntimeInfo
    """What plugins get, with the answers that differ between the versions."""
    validates_builds = True
    """Whether findings of plugins keep a TrainJob from being built; otherwise they are warnings of admission."""

    def has_bound(self, error: FieldError) -> bool:  # noqa: ARG002 - other versions decide by it
        """Whether the version has the bound of the model which a stored TrainJob exceeds."""
        return True

    mark = staticmethod(_mark)
    """Marks the pod sets that train, sets the number of nodes, and orders the Jobs."""
    apply_trainer = staticmethod(apply_trainer)
    """Puts the settings of `spec.trainer` into the pod sets that train."""
    apply_env = staticmethod(apply_trainer_env)
    """Merges `spec.trainer.env` into the pod sets that train, after the plugins."""
    merge = staticmethod(upsert)
    """Merges what an override adds to a list: what is there keeps its place, and the rest comes last."""


V2ALPHA1_PROFILE = Profile()
