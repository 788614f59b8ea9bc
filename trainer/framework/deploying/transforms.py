"""What is dropped of objects before a cache stores them, because it is never read.

People decide how large the objects are that they write, also those with the labels by which we watch. So what is stored
of an object whose metadata alone is cached is bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trainer.api.jobset_labels import JOBSET_NAME, JOBSET_UID, REPLICATED_JOB
from trainer.framework.deploying.deployer import APPLIED_HASH, LIVES_ON
from trainer.kube.events.compact import compact_event
from trainer.kube.objects import annotations_of, labels_of, metadata_of, owner_references_of
from trainer.kube.resource import CONFIG_MAPS, EVENTS, JOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
    """An object with only metadata, without what makes that large; any other as it is."""
    if _is_whole(obj) or len(msgspec.json.encode(metadata_of(obj))) <= METADATA_LIMIT:
        return obj
    ours = sorted(name for name in labels_of(obj) if name.partition("/")[0] == _OUR_DOMAIN)
    annotations = annotations_of(obj)
    kept = {name: annotations[name][:64] for name in _OUR_ANNOTATIONS if name in annotations}
    return _bare(obj, ours[:_MOST_LABELS], annotations=kept)


def bare_job(job: Object) -> Object:
    """A Job with only metadata, without the parts that are never read; any other as it is."""
    return job if _is_whole(job) else _bare(job, _JOB_LABELS)


def _is_whole(obj: Object) -> bool:
    return bool(obj.keys() - _WHOLE)


def _bare(obj: Object, labels: Iterable[str], **more: Object) -> Object:
    """The identity and the controller of an object, with these of its labels."""
    metadata, present = metadata_of(obj), labels_of(obj)
    kept = {name: metadata[name] for name in _IDENTITY if name in metadata} | {
        "labels": {name: present[name] for name in labels if name in present},
        "ownerReferences": [owner for owner in owner_references_of(obj) if owner.get("controller")],
    }
    return obj | {"metadata": kept | more}


TRANSFORMS: Mapping[Resource, Callable[[Object], Object]] = {
    CONFIG_MAPS: bounded_metadata,
    EVENTS: compact_event,
    JOBS: bare_job,
}
"""What is dropped, by kind."""

EVENTS_LIMIT = 1000
"""Events of each sort that are cached in a namespace, about 1 KiB each: enough for the pods of a large job. A namespace
with more may miss why one of its own TrainJobs waits."""

NAMESPACE_LIMITS: Mapping[Resource, int] = {EVENTS: EVENTS_LIMIT}
"""How many objects of a namespace are cached, by kind."""
