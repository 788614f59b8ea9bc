"""A child of a TrainJob: an object of ours, with its owner reference and what later builds have to know of it."""

from __future__ import annotations

import hashlib
import json

from trainer.framework.plugin_api.component import ADOPTED, Component
from trainer.framework.runtimes.runtimes import RUNTIME_DIGEST
from trainer.kube.client import Client
from trainer.kube.errors import KubeError, NotFoundError
from trainer.kube.objects import (
    Object,
    annotations_of,
    controller_reference,
    is_controlled_by,
    key_of,
    uid_of,
)
from trainer.kube.resource import Resource

APPLIED_HASH = "trainer.kubeflow.org/applied-hash"
"""Annotation with a hash of what the TrainJob asked for: where it differs, fields may have to be removed."""

FIXED_HASH = "trainer.kubeflow.org/fixed-hash"
"""Annotation with a hash of what an object cannot change, as the TrainJob asked for it: where that differs, the object
is deleted and created again once nothing of it runs."""

DELETE_WHEN_FINISHED = "trainer.kubeflow.org/delete-when-finished"
"""Annotation with the value true on objects that are deleted when the TrainJob has finished."""

_OURS = frozenset({APPLIED_HASH, DELETE_WHEN_FINISHED, RUNTIME_DIGEST, ADOPTED})


class ForeignObjectError(KubeError):
    """An object that we would create exists and belongs to somebody else; it is left alone. The work queue retries."""

    def __init__(self, resource: Resource, existing: Object) -> None:
        super().__init__(
            f"{resource.kind} {key_of(existing)} (uid {uid_of(existing)}) exists and does not belong to this TrainJob; "
            "delete it or give the TrainJob another name"
        )


def owned(obj: Object, component: Component, owner: Object, *, keeps_fixed: bool = False) -> Object:
    """The object as a child of the owner, with hashes of what the TrainJob asks for.

    With `keeps_fixed` it has the `FIXED_HASH` with which it was created.
    """
    # Users choose annotations, too: what they say about the life and the origin of an object does not count.
    annotations = {name: value for name, value in annotations_of(obj).items() if name not in _OURS}
    annotations[APPLIED_HASH] = hash_of(component.object)  # what is no JSON raises
    if component.fixed is not None and not keeps_fixed:
        annotations[FIXED_HASH] = hash_of(component.fixed)
    if component.runtime_digest:
        annotations[RUNTIME_DIGEST] = component.runtime_digest
    if component.delete_when_finished:
        annotations[DELETE_WHEN_FINISHED] = "true"
    metadata = obj["metadata"] | {"annotations": annotations, "ownerReferences": [controller_reference(owner)]}
    return obj | {"metadata": metadata}


async def stored(client: Client, owner: Object, component: Component) -> Object | None:
    """An object of the TrainJob that the cache does not show.

    Raises:
        ForeignObjectError: it belongs to somebody else.
    """
    try:
        existing = await client.get(component.resource, component.key.name, component.key.namespace)
    except NotFoundError:
        return None
    if not is_controlled_by(existing, owner):
        raise ForeignObjectError(component.resource, existing)
    return existing


def hash_of(wanted: Object) -> str:
    """A short hash of what a TrainJob asks for."""
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]
