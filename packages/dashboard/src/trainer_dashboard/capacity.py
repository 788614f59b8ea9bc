"""What the nodes of the cluster have, and what pods use of it, by type of device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

import msgspec

from trainer.explain.node_room import allocatable
from trainer.explain.reading import Compute, in_thread
from trainer.framework.plugin_api.devices import USUAL_DEVICES
from trainer.kube.client import Client, RawJson
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object, is_being_deleted, is_condition_true, labels_of, mapping_at, name_of, objects_in
from trainer.kube.pager import collect
from trainer.kube.resource import NODES, PODS
from trainer.kube.selection import Selection
from trainer.workloads.pod_requests import Amounts, pod_requests
from trainer_dashboard.claimed_devices import ClaimedDevices, claimed_devices

_PLAIN: Final = ("cpu", "memory")
"""What every node has besides devices."""
_PRODUCTS: Final = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "kubernetes.azure.com/accelerator",
)
"""Labels of nodes that name the product of their devices, set by their device plugins and clouds."""
_RUNNING = Selection(field_selector="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")

_pod = msgspec.json.Decoder(dict[str, object])
_NONE = Decimal(0)


@dataclass(slots=True)
class _Kind:
    """One resource, or the devices of one driver, of one product."""

    nodes: int = 0
    total: Decimal = _NONE
    used: Decimal = _NONE
    free: Decimal = _NONE
    """On nodes that take pods."""
    largest: Decimal = _NONE
    """The most that is free on one node."""
    is_known: bool = True
    """Whether it is known what is used."""

    def add(self, present: Decimal, used: Decimal, free: Decimal) -> None:
        """Count what a node has."""
        self.total += present
        self.used += used
        self.free += free
        self.largest = max(self.largest, free)


@dataclass(slots=True)
class _Count:
    """What was counted, by resource and product."""

    kinds: dict[tuple[str, str], _Kind] = field(default_factory=dict)
    nodes: int = 0
    open: set[str] = field(default_factory=set)
    """Nodes that are neither cordoned nor not ready."""

    def add(self, node: Object, used: Amounts | None) -> None:
        """Count a node."""
        self.nodes += 1
        if is_open := _is_open(node):
            self.open.add(name_of(node))
        for name, amount in allocatable(node).items():
            is_device = USUAL_DEVICES.is_device(name)
            if not (is_device and amount.amount) and name not in _PLAIN:
                continue
            product = _product(node) if is_device else ""
            taken = used[name].amount if used and name in used else _NONE
            free = max(amount.amount - taken, _NONE) if is_open else _NONE
            kind = self.kinds.setdefault((name, product), _Kind(is_known=used is not None))
            kind.nodes += 1
            kind.add(amount.amount, taken, free)

    def add_claimed(self, claimed: ClaimedDevices) -> None:
        """Count what claims can have; after all nodes."""
        for group in claimed.groups:
            is_open = not group.node or group.node in self.open
            kind = self.kinds.setdefault((group.driver, group.product), _Kind(is_known=claimed.is_known))
            kind.nodes += bool(group.node)
            kind.add(Decimal(group.total), Decimal(group.used), Decimal(group.free if is_open else 0))


async def capacity(client: Client, compute: Compute = in_thread) -> Object:
    """Totals, what is used and what is free: of devices by product first, then of CPUs and memory.

    What is used is null where the user may not list the pods, or the claims, of all namespaces. Devices of claims have
    the name of their driver.

    Raises:
        KubeError: the user may not list nodes, or the API server does not answer.
    """
    nodes = (await client.list(NODES)).items
    claimed = await claimed_devices(client, compute)
    problems: list[str] = []
    used: dict[str, Amounts] | None = None
    try:
        used = _sums(pair for pair in (await collect(client, PODS, _RUNNING, _use)).items if pair is not None)
    except ForbiddenError as error:
        problems.append(f"what is used is not known: {error}")
    count = _Count()
    for node in nodes:
        if not is_being_deleted(node):
            count.add(node, used.get(name_of(node), {}) if used is not None else None)
    count.add_claimed(claimed)
    kinds = sorted(count.kinds.items(), key=lambda item: (item[0][0] in _PLAIN, item[0]))
    return {
        "kinds": [_shown(name, product, kind) for (name, product), kind in kinds],
        "nodes": count.nodes,
        "closedNodes": count.nodes - len(count.open),
        "problems": [*problems, *claimed.problems],
    }


def _shown(resource: str, product: str, kind: _Kind) -> Object:
    counted = {"used": kind.used, "free": kind.free, "largestFree": kind.largest}
    return {"resource": resource, "product": product, "nodes": kind.nodes, "total": float(kind.total)} | {
        name: float(amount) if kind.is_known else None for name, amount in counted.items()
    }


def _use(raw: RawJson) -> tuple[str, Amounts] | None:
    """The node of a pod, and what it requests there of what is counted."""
    spec = mapping_at(_pod.decode(raw), "spec")
    try:
        requests = pod_requests(spec)
    except ValueError:
        return None
    counted = {name: amount for name, amount in requests.items() if name in _PLAIN or USUAL_DEVICES.is_device(name)}
    return str(spec.get("nodeName") or ""), counted


def _sums(uses: Iterable[tuple[str, Amounts]]) -> dict[str, Amounts]:
    found: dict[str, Amounts] = {}
    for node, amounts in uses:
        total = found.setdefault(node, {})
        for name, amount in amounts.items():
            total[name] = total[name] + amount if name in total else amount
    return found


def _product(node: Object) -> str:
    labels = labels_of(node)
    return next((labels[label] for label in _PRODUCTS if labels.get(label)), "")


def _is_open(node: Object) -> bool:
    """Whether new pods may be placed on a node, unless its taints repel them."""
    is_reported = bool(objects_in(mapping_at(node, "status").get("conditions")))
    is_ready = is_condition_true(node, "Ready") or not is_reported
    return is_ready and not mapping_at(node, "spec").get("unschedulable")
