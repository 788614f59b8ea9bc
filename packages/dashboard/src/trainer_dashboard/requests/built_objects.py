"""The objects that a TrainJob is built into, with the origin of each field of their templates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trainer.api import patterns
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.documents import Document
from trainer.cli.errors import BadInputError
from trainer.cli.offline.render import render_documents
from trainer.framework.runtimes.runtimes import place_of
from trainer.kube.client import Client
from trainer.kube.field_errors import FieldError, invalid
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
from trainer_dashboard.access.parties import Party
from trainer_dashboard.requests.manifests import require_size
from trainer_dashboard.requests.rejected import RejectedError

LARGEST_BUILT: Final = 64 * 1024
"""Bytes of JSON of a TrainJob and its runtime, whose objects are several times as long and take up to a second."""


@dataclass(frozen=True, slots=True)
class BuiltObjects:
    """What is rendered of a TrainJob and its runtime."""

    yaml: str
    """The objects as documents, in which comments name origins."""
    notes: tuple[str, ...]
    """What is not shown, such as what the manager generates."""


async def built_objects(client: Client, served: Served, party: Party, key: ObjectKey) -> BuiltObjects:
    """The objects of a TrainJob by its runtime of today, as `trainer render --explain` builds them.

    Args:
        client: of the user, who sees what they may read.
        served: the version that the cluster serves.
        party: theirs.
        key: of the TrainJob.

    Raises:
        KubeError: the API server refuses to show the TrainJob or its runtime.
        RejectedError: they cannot be built, or are too large.
    """
    job = await client.get(served.resource(TRAIN_JOBS), key.name, key.namespace)
    reference = mapping_at(decoded(job), "spec", "runtimeRef")
    kind, name = str(reference.get("kind") or "ClusterTrainingRuntime"), str(reference.get("name") or "")
    resource, place = place_of(kind, key.namespace, name)
    if not patterns.compiled(patterns.OBJECT_NAME).search(name):
        raise RejectedError(invalid("spec.runtimeRef.name", name, patterns.WORDS[patterns.OBJECT_NAME]))
    runtime = await client.get(served.resource(resource), place.name, place.namespace)
    written = _written(job), _written(runtime)
    require_size(LARGEST_BUILT, *written)
    return await party.compute(_rendered, written[0], resource, written[1])


def _rendered(train_job: Object, resource: Resource, runtime: Object) -> BuiltObjects:
    """With all plugins that are installed here; blocks."""
    try:
        (rendered,) = render_documents([Document(TRAIN_JOBS, train_job), Document(resource, runtime)])
    except BadInputError as error:
        raise RejectedError(FieldError("", str(error))) from None
    return BuiltObjects(rendered.to_yaml(explain=True), rendered.notes)


def _written(obj: Object) -> Object:
    """An object without its state and what the API server has added."""
    metadata = {"name": name_of(obj), "labels": labels_of(obj), "annotations": annotations_of(obj)}
    if namespace_of(obj):
        metadata["namespace"] = namespace_of(obj)
    if (uid := metadata_of(obj).get("uid")) is not None:
        metadata["uid"] = uid
    return {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind"), "metadata": metadata, "spec": obj.get("spec")}
