"""The objects that a TrainJob is built into, with the origin of each field of their templates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from trainer.api import patterns
from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.runtimes.runtimes import place_of
from trainer.kube.client import Client
from trainer.kube.field_errors import invalid
from trainer.kube.objects import (
    Object,
    ObjectKey,
    annotations_of,
    labels_of,
    mapping_at,
    metadata_of,
    name_of,
    namespace_of,
)
from trainer.kube.resource import Resource
from trainer.v1alpha1.client import decoded
from trainer.v1alpha1.discovery import Served
from trainer_dashboard.manifests import require_size
from trainer_dashboard.parties import Party
from trainer_dashboard.rejected import RejectedError

LARGEST_BUILT: Final = 64 * 1024
"""Bytes of JSON of a TrainJob and its runtime, whose objects are several times as long and take up to a second."""


@dataclass(frozen=True, slots=True)
class BuiltObjects:
    """What a renderer makes of a TrainJob and its runtime."""

    yaml: str
    """The objects as documents, in which comments name origins."""
    notes: tuple[str, ...] = ()
    """What is not shown, such as what the manager generates."""


class Renderer(Protocol):
    """Builds the objects of TrainJobs, as `trainer render --explain` does."""

    def __call__(self, train_job: Object, resource: Resource, runtime: Object) -> BuiltObjects:
        """Build those of a TrainJob on a runtime, both as the cluster stores them; blocks.

        Raises:
            RejectedError: it cannot be built.
        """


@dataclass(frozen=True, slots=True)
class Builds:
    """Builds the objects of TrainJobs, with what their user may read."""

    client: Client
    served: Served
    render: Renderer
    party: Party

    async def of(self, key: ObjectKey) -> BuiltObjects:
        """Those of a TrainJob, by its runtime of today.

        Raises:
            KubeError: the API server refuses to show the TrainJob or its runtime.
            RejectedError: they cannot be built, or are too large.
        """
        job = await self.client.get(self.served.resource(TRAIN_JOBS), key.name, key.namespace)
        reference = mapping_at(decoded(job), "spec", "runtimeRef")
        kind, name = str(reference.get("kind") or "ClusterTrainingRuntime"), str(reference.get("name") or "")
        resource, place = place_of(kind, key.namespace, name)
        if not patterns.compiled(patterns.OBJECT_NAME).search(name):
            raise RejectedError(invalid("spec.runtimeRef.name", name, patterns.WORDS[patterns.OBJECT_NAME]))
        runtime = await self.client.get(self.served.resource(resource), place.name, place.namespace)
        written = _written(job), _written(runtime)
        require_size(LARGEST_BUILT, *written)
        return await self.party.compute(self.render, written[0], resource, written[1])


def _written(obj: Object) -> Object:
    """An object without its state and what the API server has added."""
    metadata = {"name": name_of(obj), "labels": labels_of(obj), "annotations": annotations_of(obj)}
    if namespace_of(obj):
        metadata["namespace"] = namespace_of(obj)
    if (uid := metadata_of(obj).get("uid")) is not None:
        metadata["uid"] = uid
    return {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind"), "metadata": metadata, "spec": obj.get("spec")}
