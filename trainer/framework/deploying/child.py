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

SPEC_HASH = "trainer.kubeflow.org/spec-hash"
"""Annotation with a hash of the TrainJob's spec for which an object was created: where the spec is still the same, what
differs of the object is built in another way by another version of the manager, and nobody has changed it too late."""

DELETE_WHEN_FINISHED = "trainer.kubeflow.org/delete-when-finished"
"""Annotation with the value true on objects that are deleted when the TrainJob has finished."""

LIVES_ON = "trainer.kubeflow.org/lives-on"
"""Annotation with the value false that release 0.1 has written in place of
`trainer.kubeflow.org/delete-when-finished`."""

_OURS = frozenset({APPLIED_HASH, SPEC_HASH, DELETE_WHEN_FINISHED, LIVES_ON, RUNTIME_DIGEST, ADOPTED})
_NOT_BUILT = frozenset({"suspend", "activeDeadlineSeconds", "ttlSecondsAfterFinished"})
"""Fields of a TrainJob's spec that change nothing about its pods."""


class ForeignObjectError(KubeError):
    """An object that we would create exists and belongs to somebody else; it is left alone. The work queue retries."""

    def __init__(self, resource: Resource, existing: Object) -> None:
        super().__init__(
            f"{resource.kind} {key_of(existing)} (uid {uid_of(existing)}) exists and does not belong to this TrainJob; "
            "delete it or give the TrainJob another name"
        )


def owned(
    obj: Object, component: Component, owner: Object, *, keeps_fixed: bool = False, spec_hash: str | None = None
) -> Object:
    """The object as a child of the owner, with hashes of what the TrainJob asks for.

    With `keeps_fixed` it has the `FIXED_HASH` with which it was created. `spec_hash` is that of an object which exists.
    """
    # Users choose annotations, too: what they say about the life and the origin of an object does not count.
    annotations = {name: value for name, value in annotations_of(obj).items() if name not in _OURS}
    annotations[APPLIED_HASH] = hash_of(component.object)  # what is no JSON raises
    if component.fixed is not None and not keeps_fixed:
        annotations[FIXED_HASH] = hash_of(component.fixed)
    if component.runs_pods:
        annotations[SPEC_HASH] = spec_hash or spec_hash_of(owner)
    if component.runtime_digest:
        annotations[RUNTIME_DIGEST] = component.runtime_digest
    if component.delete_when_finished:
        annotations[DELETE_WHEN_FINISHED] = "true"
    metadata = obj["metadata"] | {"annotations": annotations, "ownerReferences": [controller_reference(owner)]}
    return obj | {"metadata": metadata}


def is_deleted_when_finished(child: Object) -> bool:
    """Whether an object of ours is of no use once its TrainJob has ended."""
    return not annotations_of(child).keys().isdisjoint((DELETE_WHEN_FINISHED, LIVES_ON))


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


def spec_hash_of(owner: Object) -> str:
    """The hash of what a TrainJob asks of its pods."""
    return hash_of({name: value for name, value in owner["spec"].items() if name not in _NOT_BUILT})


def hash_of(wanted: Object) -> str:
    """A short hash of what a TrainJob asks for."""
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]
