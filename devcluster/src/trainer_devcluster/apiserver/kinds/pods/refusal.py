"""Refusals of pods by the admission plugins of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.api_semantics import statuses
from trainer.kube.objects import metadata_of, name_of
from trainer.kube.resource import PODS

if TYPE_CHECKING:
    from trainer.kube.errors import ApiError
    from trainer.kube.objects import Object


def refused(pod: Object, message: str) -> ApiError:
    """A 403 that calls the pod by its name, or by what its name will begin with."""
    return statuses.forbidden(PODS, name_of(pod) or metadata_of(pod).get("generateName") or "Unknown!", message)
