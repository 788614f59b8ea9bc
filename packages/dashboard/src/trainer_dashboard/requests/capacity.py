"""What the nodes of the cluster have, and what pods request of it, by type of device and by node."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.explain.node_room import allocatable
from trainer.explain.reading import Compute, in_thread
from trainer.framework.plugin_api.devices import USUAL_DEVICES
from trainer.kube.client import Client, RawJson
from trainer.kube.clock import Clock
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import (
    Object,
    ObjectKey,
    is_being_deleted,
    labels_of,
    mapping_at,
    name_of,
    namespace_of,
)
from trainer.kube.pager import collect
from trainer.kube.resource import NODES, PODS
from trainer.kube.selection import Selection
from trainer.workloads.pod_requests import Amounts, pod_requests
from trainer_dashboard.requests.claimed_devices import ClaimedDevices, claimed_devices
from trainer_dashboard.requests.node_rows import PLAIN, Load, NodeList, PlacedPod, is_open, loads, product_of
from trainer_dashboard.requests.utilisation import utilisation

_RUNNING = Selection(field_selector="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")

_NO_NODES = "Nodes, and what is free on them, are not shown: you may not list nodes."
_NO_PODS = "What is requested, and what is free, is not known: you may not list the pods of all namespaces."

_pod = msgspec.json.Decoder(dict[str, object])
_NONE = Decimal(0)


@dataclass(slots=True)
class _Kind:
    """One resource, or the devices of one driver, of one product."""

    nodes: int = 0
    total: Decimal = _NONE
    requested: Decimal = _NONE
    free: Decimal = _NONE
    """On nodes that take pods."""
    largest: Decimal = _NONE
    """The most that is free on one node."""
    is_known: bool = True
    """Whether it is known what is requested."""

    def add(self, present: Decimal, requested: Decimal, free: Decimal) -> None:
        """Count what a node has."""
        self.total += present
        self.requested += requested
        self.free += free
        self.largest = max(self.largest, free)


@dataclass(slots=True)
class _Count:
    """What was counted, by resource and product."""

    kinds: dict[tuple[str, str], _Kind] = field(default_factory=dict)
    nodes: int = 0
    open: set[str] = field(default_factory=set)
    """Nodes that are neither cordoned nor not ready."""

    def add(self, node: Object, requested: Amounts | None) -> None:
        """Count a node."""
        self.nodes += 1
        if takes_pods := is_open(node):
            self.open.add(name_of(node))
        for name, amount in allocatable(node).items():
            is_device = USUAL_DEVICES.is_device(name)
            if not (is_device and amount.amount) and name not in PLAIN:
                continue
            product = product_of(node) if is_device else ""
            taken = requested[name].amount if requested and name in requested else _NONE
            free = max(amount.amount - taken, _NONE) if takes_pods else _NONE
            kind = self.kinds.setdefault((name, product), _Kind(is_known=requested is not None))
            kind.nodes += 1
            kind.add(amount.amount, taken, free)

    def add_claimed(self, claimed: ClaimedDevices) -> None:
        """Count what claims can have; after all nodes."""
        for group in claimed.groups:
            takes_pods = not group.node or group.node in self.open
            kind = self.kinds.setdefault((group.driver, group.product), _Kind(is_known=claimed.is_known))
            kind.nodes += bool(group.node)
            kind.add(Decimal(group.total), Decimal(group.used), Decimal(group.free if takes_pods else 0))


async def capacity(client: Client, clock: Clock, compute: Compute = in_thread) -> Object:
    """Totals of devices by product first, then of CPUs and memory, and the nodes.

    What is requested is null where the user may not list the pods, or the claims, of all namespaces. Devices of claims
    have the name of their driver. What is used is measured, and null where nobody does so. Without the right to list
    nodes there is a note in place of all that.

    Raises:
        KubeError: the API server does not answer.
    """
    try:
        nodes = [node for node in (await client.list(NODES)).items if not is_being_deleted(node)]
    except ForbiddenError:
        nothing: Object = {"kinds": [], "nodes": 0, "closedNodes": 0, "members": [], "moreNodes": 0, "problems": []}
        return nothing | {"notes": [_NO_NODES]}
    claimed = await claimed_devices(client, compute)
    held: dict[str, Load] | None = None
    with suppress(ForbiddenError):
        placed = (await collect(client, PODS, _RUNNING, _placed)).items
        held = await compute(loads, [pod for pod in placed if pod is not None])
    used = await utilisation(client, clock)
    found = NodeList(held, used, claimed.groups, claimed.is_known)
    return await compute(_answer, nodes, found, claimed)


def _answer(nodes: list[Object], found: NodeList, claimed: ClaimedDevices) -> Object:
    count = _Count()
    for node in nodes:
        load = None if found.held is None else found.held.get(name_of(node)) or Load()
        count.add(node, None if load is None else load.requested)
    count.add_claimed(claimed)
    kinds = sorted(count.kinds.items(), key=lambda item: (item[0][0] in PLAIN, item[0]))
    measured = {kind: sum(each.get(kind, 0.0) for each in found.used.values()) for kind in PLAIN if found.used}
    return {
        "kinds": [_shown(name, product, kind) | {"used": measured.get(name)} for (name, product), kind in kinds],
        "nodes": count.nodes,
        "closedNodes": count.nodes - len(count.open),
        **found.of(nodes),
        "problems": claimed.problems,
        "notes": [_NO_PODS] if found.held is None else [],
    }


def _shown(resource: str, product: str, kind: _Kind) -> Object:
    counted = {"requested": kind.requested, "free": kind.free, "largestFree": kind.largest}
    return {"resource": resource, "product": product, "nodes": kind.nodes, "total": float(kind.total)} | {
        name: float(amount) if kind.is_known else None for name, amount in counted.items()
    }


def _placed(raw: RawJson) -> PlacedPod | None:
    """What a pod holds of its node; None where its requests cannot be read."""
    pod = _pod.decode(raw)
    spec = mapping_at(pod, "spec")
    try:
        requests = pod_requests(spec)
    except ValueError:
        return None
    counted = {name: amount for name, amount in requests.items() if name in PLAIN or USUAL_DEVICES.is_device(name)}
    job = labels_of(pod).get(JOBSET_NAME)
    return PlacedPod(str(spec.get("nodeName") or ""), counted, ObjectKey(namespace_of(pod), job) if job else None)
