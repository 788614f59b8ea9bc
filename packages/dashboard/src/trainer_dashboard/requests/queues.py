"""The queues of Kueue: what may be had of them, and what waits in them, at which place and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from trainer.api.trainjob import TRAIN_JOBS
from trainer.explain.suspension import WORKLOADS
from trainer.explain.workload import standing_of
from trainer.framework.plugin_api.devices import USUAL_DEVICES
from trainer.kube.client import Client
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import (
    Object,
    controller_of,
    is_condition_true,
    mapping_at,
    metadata_of,
    name_of,
    namespace_of,
    objects_in,
    owner_references_of,
    uid_of,
)
from trainer.kube.resource import Resource
from trainer.workloads import JOBSETS
from trainer_dashboard.access.visible import NamespaceScope, Visible, visible
from trainer_dashboard.requests.quotas import number_of, quotas

SHOWN: Final = 500
"""Most waiting Workloads that are shown."""
_LONGEST_MESSAGE = 300
_TRAININGS: Final = frozenset({TRAIN_JOBS.kind, JOBSETS.kind})
"""Kinds that Kueue makes Workloads for whose objects have the name of a TrainJob, or may have it."""


class _Queue(NamedTuple):
    """The identity of a LocalQueue."""

    namespace: str
    name: str


class _Held(NamedTuple):
    """How many Workloads a queue holds, and the ClusterQueue that it belongs to; "" where that is not known."""

    admitted: int
    waiting: int
    cluster_queue: str = ""


async def queues(client: Client, scope: NamespaceScope) -> Object:
    """The LocalQueues of the namespaces that a user sees: how many Workloads they hold, and those that wait.

    Waiting ones are in Kueue's usual order within a queue: by priority, then by age. That is their `place`, which one
    that cannot start without somebody's doing has not. ClusterQueues come with their quotas, where the user may list
    them. Without Kueue there are none, and `isServed` is false.

    Raises:
        KubeError: the API server does not answer.
    """
    for resource in WORKLOADS:
        with suppress(NotFoundError):
            workloads = await visible(client, resource, scope)
            local = await _local_queues(client, resource.version, scope)
            return _answer(workloads, local) | await quotas(client, resource.version)
    return _answer(Visible(), {}, is_served=False) | {"clusterQueues": [], "moreClusterQueues": 0}


async def _local_queues(client: Client, version: str, scope: NamespaceScope) -> dict[_Queue, _Held]:
    """The LocalQueues that a user may list, with what they say of themselves; others are known by their Workloads."""
    try:
        found = await visible(client, Resource("kueue.x-k8s.io", version, "localqueues", "LocalQueue"), scope)
    except NotFoundError:
        return {}
    return {
        _Queue(namespace_of(each), name_of(each)): _Held(
            number_of(mapping_at(each, "status").get("admittedWorkloads")),
            number_of(mapping_at(each, "status").get("pendingWorkloads")),
            str(mapping_at(each, "spec").get("clusterQueue") or ""),
        )
        for each in found.objects
    }


def _answer(found: Visible, local: dict[_Queue, _Held], *, is_served: bool = True) -> Object:
    present = [each for each in found.objects if not is_condition_true(each, "Finished")]
    waiting = [each for each in present if not is_condition_true(each, "Admitted")]
    admitted = Counter(map(_queue_of, (each for each in present if is_condition_true(each, "Admitted"))))
    pending = Counter(map(_queue_of, waiting))
    held = dict(local)
    for queue in admitted.keys() | pending.keys():
        of = local[queue].cluster_queue if queue in local else ""
        held[queue] = _Held(admitted[queue], pending[queue], of)
    waiting.sort(key=lambda each: (namespace_of(each), _queue(each), -_priority(each), _created(each)))
    places = _places(waiting)
    return {
        "isServed": is_served,
        "problems": found.problems,
        "notes": found.notes,
        "queues": [_local_queue(queue, counts) for queue, counts in sorted(held.items())],
        "workloads": [_workload(each) | {"place": places.get(uid_of(each))} for each in waiting[:SHOWN]],
        "more": max(len(waiting) - SHOWN, 0),
    }


def _local_queue(queue: _Queue, held: _Held) -> Object:
    counts = {"waiting": held.waiting, "admitted": held.admitted}
    return queue._asdict() | counts | {"clusterQueue": held.cluster_queue}


def _places(waiting: Iterable[Object]) -> dict[str, int]:
    """The place of each Workload in its LocalQueue by its UID, the first is 1; they come in their order."""
    last: Counter[_Queue] = Counter()
    places = {}
    for workload in waiting:
        if standing_of(workload).waits:
            queue = _queue_of(workload)
            last[queue] += 1
            places[uid_of(workload)] = last[queue]
    return places


def _workload(workload: Object) -> Object:
    owner = controller_of(workload) or next(iter(owner_references_of(workload)), {})
    is_training = owner.get("kind") in _TRAININGS
    return {
        "uid": uid_of(workload),
        "name": name_of(workload),
        "namespace": namespace_of(workload),
        "queue": _queue(workload),
        "training": str(owner.get("name") or "") if is_training else "",
        "owner": f"{owner.get('kind') or ''} {owner.get('name') or ''}".strip(),
        "gpus": _devices(workload),
        "created": metadata_of(workload).get("creationTimestamp"),
        "message": standing_of(workload).message[:_LONGEST_MESSAGE],
    }


def _devices(workload: Object) -> int:
    """GPUs and the like that all its pods ask for; an amount that no number of devices can be counts none."""
    count = 0
    for pod_set in objects_in(mapping_at(workload, "spec").get("podSets")):
        pod = mapping_at(pod_set, "template", "spec")
        pods = pod_set.get("count")
        containers = objects_in(pod.get("containers"))
        try:
            each = sum(
                USUAL_DEVICES.devices_of(mapping_at(container, "resources"), pod, "").count for container in containers
            )
        except ValueError:
            continue
        count += each * (pods if isinstance(pods, int) else 1)
    return count


def _queue_of(workload: Object) -> _Queue:
    return _Queue(namespace_of(workload), _queue(workload))


def _queue(workload: Object) -> str:
    return str(mapping_at(workload, "spec").get("queueName") or "")


def _priority(workload: Object) -> int:
    return number_of(mapping_at(workload, "spec").get("priority"))


def _created(workload: Object) -> str:
    return str(metadata_of(workload).get("creationTimestamp") or "")
