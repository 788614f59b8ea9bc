"""The quotas of Kueue's ClusterQueues: what Workloads may have of each flavor, and what is reserved for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainer.framework.plugin_api.devices import USUAL_DEVICES
from trainer.kube.client import Client
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.objects import Object, find_condition, mapping_at, name_of, objects_in
from trainer.kube.quantity import parse_quantity
from trainer.kube.resource import Resource

QUEUES_SHOWN: Final = 100
"""Most ClusterQueues in one answer."""
_LONGEST_MESSAGE: Final = 200


async def quotas(client: Client, version: str) -> Object:
    """The ClusterQueues by name; none, and null in place of them, where the user may not list them.

    Raises:
        KubeError: the API server does not answer.
    """
    resource = Resource("kueue.x-k8s.io", version, "clusterqueues", "ClusterQueue", namespaced=False)
    try:
        found = sorted((await client.list(resource)).items, key=name_of)
    except ForbiddenError:
        return {"clusterQueues": None, "moreClusterQueues": 0}
    except NotFoundError:
        found = []
    shown = found[:QUEUES_SHOWN]
    return {"clusterQueues": [_queue(each) for each in shown], "moreClusterQueues": len(found) - len(shown)}


def _queue(queue: Object) -> Object:
    spec, status = mapping_at(queue, "spec"), mapping_at(queue, "status")
    active = find_condition(queue, "Active") or {}
    is_stopped = active.get("status") == "False"
    return {
        "name": name_of(queue),
        "cohort": str(spec.get("cohortName") or spec.get("cohort") or ""),
        "stopped": str(active.get("message") or "it is not active")[:_LONGEST_MESSAGE] if is_stopped else "",
        "waiting": number_of(status.get("pendingWorkloads")),
        "admitted": number_of(status.get("admittedWorkloads")),
        "quotas": sorted(_quotas(spec, _reserved(status)), key=_order),
    }


def _quotas(spec: Object, reserved: dict[tuple[str, str], tuple[float, float]]) -> Iterator[Object]:
    for group in objects_in(spec.get("resourceGroups")):
        for flavor in objects_in(group.get("flavors")):
            for each in objects_in(flavor.get("resources")):
                key = str(flavor.get("name") or ""), str(each.get("name") or "")
                total, borrowed = reserved.get(key, (0.0, 0.0))
                yield {
                    "flavor": key[0],
                    "resource": key[1],
                    "nominal": _amount(each.get("nominalQuota")),
                    "reserved": total,
                    "borrowed": borrowed,
                }


def _reserved(status: Object) -> dict[tuple[str, str], tuple[float, float]]:
    """What Workloads with a quota have together, and how much of it is borrowed, by flavor and resource."""
    return {
        (str(flavor.get("name") or ""), str(each.get("name") or "")): (
            _amount(each.get("total")),
            _amount(each.get("borrowed")),
        )
        for flavor in objects_in(status.get("flavorsReservation"))
        for each in objects_in(flavor.get("resources"))
    }


def _order(quota: Object) -> tuple[bool, str, str]:
    """Devices come first."""
    return not USUAL_DEVICES.is_device(quota["resource"]), quota["resource"], quota["flavor"]


def _amount(quantity: object) -> float:
    """0 where there is none, or it cannot be read."""
    try:
        return float(parse_quantity(quantity))
    except ValueError:
        return 0.0


def number_of(value: object) -> int:
    """A number of a Workload or a queue; 0 where there is none."""
    return value if isinstance(value, int) else 0
