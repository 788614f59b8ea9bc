"""What of an object is dropped before a cache stores it, because nobody reads it.

People decide how large the objects are that they write, also those that carry the labels by which we watch. What is
stored of an object whose metadata alone is cached is therefore bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trainer.api.jobset_labels import JOBSET_NAME, JOBSET_UID, REPLICATED_JOB
from trainer.framework.deployer import APPLIED_HASH, LIVES_ON
from trainer.kube.events.compact import compact_event
from trainer.kube.objects import annotations_of, labels_of, metadata_of, owner_references_of
from trainer.kube.resource import CONFIG_MAPS, EVENTS, JOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

METADATA_LIMIT = 2048
"""Bytes; the metadata of the ConfigMaps that we make is a third of it."""

_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
_WHOLE = frozenset({"apiVersion", "kind", "metadata"})
_OUR_DOMAIN = "trainer.kubeflow.org"
_OUR_ANNOTATIONS = (APPLIED_HASH, LIVES_ON)
_MOST_LABELS = 8
_JOB_LABELS = (JOBSET_NAME, JOBSET_UID, REPLICATED_JOB)


def bounded_metadata(obj: Object) -> Object:
    """An object of which only metadata is there, without what makes that large; any other as it is."""
    metadata = metadata_of(obj)
    if obj.keys() - _WHOLE or len(msgspec.json.encode(metadata)) <= METADATA_LIMIT:
        return obj
    labels = sorted(item for item in labels_of(obj).items() if item[0].partition("/")[0] == _OUR_DOMAIN)
    annotations = annotations_of(obj)
    kept = {name: metadata[name] for name in _IDENTITY if name in metadata} | {
        "labels": dict(labels[:_MOST_LABELS]),
        "annotations": {name: annotations[name][:64] for name in _OUR_ANNOTATIONS if name in annotations},
        "ownerReferences": [owner for owner in owner_references_of(obj) if owner.get("controller")],
    }
    return obj | {"metadata": kept}


def bare_job(job: Object) -> Object:
    """A Job of which only metadata is there, without what nobody reads of that; any other as it is."""
    if job.keys() - _WHOLE:
        return job
    metadata = metadata_of(job)
    kept = {name: metadata[name] for name in _IDENTITY if name in metadata} | {
        "labels": {name: value for name, value in labels_of(job).items() if name in _JOB_LABELS},
        "ownerReferences": [owner for owner in owner_references_of(job) if owner.get("controller")],
    }
    return job | {"metadata": kept}


TRANSFORMS: Mapping[Resource, Callable[[Object], Object]] = {
    CONFIG_MAPS: bounded_metadata,
    EVENTS: compact_event,
    JOBS: bare_job,
}
"""Of which kinds what is dropped."""

EVENTS_LIMIT = 1000
"""Events of each sort that are cached in a namespace, about 1 KiB each: enough for the pods of a large job. Whoever has
more of them, by accident or on purpose, may miss why one of their own TrainJobs waits."""

NAMESPACE_LIMITS: Mapping[Resource, int] = {EVENTS: EVENTS_LIMIT}
"""Of which kinds how many objects of a namespace are cached."""
