"""Transforms that drop the parts of objects that are never read, before a cache stores them.

People decide how large the objects are that they write, also those with the labels by which we watch. So what is stored
of an object whose metadata alone is cached is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from trainer.api.jobset_labels import (
    COMPLETION_INDEX,
    JOB_INDEX,
    JOBSET_NAME,
    JOBSET_UID,
    REPLICATED_JOB,
    RESTART_ATTEMPT,
)
from trainer.api.progress import CONTAINER, PRIMARY_POD
from trainer.framework.deploying.child import APPLIED_HASH, DELETE_WHEN_FINISHED, LIVES_ON
from trainer.framework.plugin_api.devices import RESOURCE_CLAIM_TEMPLATES
from trainer.kube.cache.cache import Cache
from trainer.kube.cache.transform import Transform
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.events.compact import compact_event
from trainer.kube.objects import (
    Object,
    annotations_of,
    labels_of,
    mapping_at,
    metadata_of,
    objects_in,
    owner_references_of,
)
from trainer.kube.resource import CONFIG_MAPS, EVENTS, JOBS, PODS, Resource

METADATA_LIMIT = 2048
"""Bytes; the metadata of the ConfigMaps that we make is a third of it."""

_IDENTITY = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_WHOLE = frozenset({"apiVersion", "kind", "metadata"})
_OUR_DOMAIN = "trainer.kubeflow.org"
_OUR_ANNOTATIONS = (APPLIED_HASH, DELETE_WHEN_FINISHED, LIVES_ON)
_MOST_LABELS = 8
POD_LIMIT = 32 * 1024
"""Bytes of JSON above which a pod is stored without the fields that nothing here reads; a usual pod has 8 KiB."""

_MOST_ITEMS = 64
_LONGEST = 1024
_POD_LABELS = (JOBSET_NAME, JOBSET_UID, REPLICATED_JOB, JOB_INDEX, RESTART_ATTEMPT, COMPLETION_INDEX)
_POD_ANNOTATIONS = (COMPLETION_INDEX, PRIMARY_POD, CONTAINER)
_POD_SPEC = ("nodeName", "schedulerName", "restartPolicy")
_CONTAINER = ("name", "restartPolicy", "restartPolicyRules")
_CONTAINER_WITH_RESOURCES = (*_CONTAINER, "resources")
_RESOURCES_LIMIT = 8 * 1024
"""Bytes of the requests and limits of all containers of a pod, above which it is stored without."""
_DEVICE_REQUEST = ("deviceClassName", "count", "adminAccess")
_JOB_LABELS = (JOBSET_NAME, JOBSET_UID, REPLICATED_JOB)


def bounded_metadata(obj: Object) -> Object:
    """An object with only metadata, without its large parts; any other object as it is."""
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
    metadata, present = metadata_of(obj), labels_of(obj)
    kept = {name: metadata[name] for name in _IDENTITY if name in metadata} | {
        "labels": {name: present[name] for name in labels if name in present},
        "ownerReferences": [owner for owner in owner_references_of(obj) if owner.get("controller")],
    }
    return obj | {"metadata": kept | more}


def compact_pod(pod: Object) -> Object:
    """A pod with the fields that the status of a TrainJob and its progress are derived from, in bounded size.

    Of its containers and volumes only the first `_MOST_ITEMS` are kept.
    """
    present = annotations_of(pod)
    annotations = {name: present[name][:_LONGEST] for name in _POD_ANNOTATIONS if name in present}
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    amounts = msgspec.json.encode([container.get("resources") for container in containers])
    of_container = _CONTAINER_WITH_RESOURCES if len(amounts) <= _RESOURCES_LIMIT else _CONTAINER
    kept_spec = _part(spec, _POD_SPEC) | {
        "containers": _items(spec.get("containers"), of_container),
        "initContainers": _items(spec.get("initContainers"), of_container),
        "volumes": _items(spec.get("volumes"), ("name",)),
    }
    kept_status = {name: value[:_MOST_ITEMS] if isinstance(value, list) else value for name, value in status.items()}
    return _bare(pod, _POD_LABELS, annotations=annotations) | {"spec": kept_spec, "status": kept_status}


def bare_claim_template(template: Object) -> Object:
    """A ResourceClaimTemplate without the parts that count no device: selectors, constraints and configuration."""
    requests = objects_in(mapping_at(template, "spec", "spec", "devices").get("requests"))[:_MOST_ITEMS]
    bare = [
        _part(request, ("name",))
        | ({"exactly": _part(mapping_at(request, "exactly"), _DEVICE_REQUEST)} if "exactly" in request else {})
        | {"firstAvailable": _items(objects_in(request.get("firstAvailable")), _DEVICE_REQUEST)}
        for request in requests
    ]
    return _bare(template, ()) | {"spec": {"spec": {"devices": {"requests": bare}}}}


def _items(items: list[Object] | None, names: Iterable[str]) -> list[Object]:
    return [_part(item, names) for item in (items or [])[:_MOST_ITEMS]]


def _part(obj: Object, names: Iterable[str]) -> Object:
    return {name: obj[name] for name in names if name in obj}


TRANSFORMS: Mapping[Resource, Transform] = {
    CONFIG_MAPS: Transform(bounded_metadata, larger_than=METADATA_LIMIT),
    EVENTS: Transform(compact_event),
    JOBS: Transform(bare_job),
    PODS: Transform(compact_pod, larger_than=POD_LIMIT),
    RESOURCE_CLAIM_TEMPLATES: Transform(bare_claim_template),
}
"""The transforms of all caches, by kind."""

EVENTS_LIMIT = 1000
"""Events of each sort that are cached in a namespace, about 1 KiB each: enough for the pods of a large job. A namespace
with more may miss why one of its own TrainJobs waits."""

NAMESPACE_LIMITS: Mapping[Resource, int] = {EVENTS: EVENTS_LIMIT}
"""Limits of the cached objects of a namespace, by kind."""


def bounded_cache(client: Client, clock: Clock) -> Cache:
    """The cache of a process that is no manager: what it holds of an object has the same bounds in all of them."""
    return Cache(client, clock=clock, transforms=TRANSFORMS, namespace_limits=NAMESPACE_LIMITS)
