"""Conventions: the differences between the API versions in the objects that a TrainJob becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.api.trainjob import TrainJob

RENDEZVOUS_PORT = 29400
"""Port of the first node, where the others meet it, in every framework; torchrun's default (KEP-2170 examples)."""


@dataclass(frozen=True, slots=True)
class Conventions:
    """The profile of a version. All defaults are those of v2alpha1; v1alpha1 has those of the released Trainer."""

    rendezvous_port: int = RENDEZVOUS_PORT
    """Port of the first node, where the others meet it."""
    needs_trainer: bool = False
    """Whether a TrainJob without `spec.trainer` gets no variables and no port."""
    has_extras: bool = True
    """Whether plugins build more than the released Trainer, such as PET_STANDALONE, several processes of JAX or the
    order of MPI Jobs, or choose otherwise, such as the type of SSH keys."""
    trains_by_label: bool = False
    """Whether the ancestor label alone says which Jobs train, and their container is always called `node`."""
    env_comes_first: bool = False
    """Whether the variables of `spec.trainer` come before those of plugins for torch, XGBoost and plain trainings."""
    merges_strategically: bool = False
    """Whether the items that an override changes are ordered as by a strategic merge patch, else they keep their
    places and new ones come last."""
    gang_is_everybody: bool = False
    """Whether all pods are members of a gang, if they can all run at the same time."""
    has_unique_names: bool = True
    """Whether the names of generated Secrets have a hash, so that another TrainJob of the same name has others."""
    validates_builds: bool = True
    """Whether findings of plugins keep a TrainJob from being built; otherwise they are warnings of admission."""

    @classmethod
    def of(cls, train_job: TrainJob) -> Conventions:
        """The conventions of the API version that the cluster serves."""
        return V1ALPHA1 if train_job.api_version.endswith("/v1alpha1") else V2ALPHA1


V2ALPHA1 = Conventions()
V1ALPHA1 = Conventions(
    rendezvous_port=29500,
    needs_trainer=True,
    has_extras=False,
    trains_by_label=True,
    env_comes_first=True,
    merges_strategically=True,
    gang_is_everybody=True,
    has_unique_names=False,
    validates_builds=False,
)
