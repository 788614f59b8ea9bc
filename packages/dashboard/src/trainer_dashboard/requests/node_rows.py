"""The nodes of the cluster, each with its state, what pods request of it, and the trainings on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from trainer.explain.node_room import allocatable
from trainer.framework.plugin_api.devices import USUAL_DEVICES
from trainer.kube.objects import Object, ObjectKey, find_condition, labels_of, mapping_at, name_of, objects_in
from trainer.kube.quantity import Quantity
from trainer.workloads.pod_requests import Amounts
from trainer.workloads.tolerations import OUT_OF_SERVICE, has_taint
from trainer_dashboard.requests.claimed_devices import DeviceGroup

PLAIN: Final = ("cpu", "memory")
"""What every node has besides devices."""
NODES_SHOWN: Final = 1000
"""Most nodes in one answer."""
_TRAININGS_SHOWN: Final = 12
"""Most trainings of one node."""
_LONGEST_MESSAGE: Final = 200
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
_INSTANCE_TYPES: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_TROUBLES: Final = {
    "MemoryPressure": "Memory pressure",
    "DiskPressure": "Disk pressure",
    "PIDPressure": "PID pressure",
    "NetworkUnavailable": "No network",
}
"""Conditions that are true of a node in trouble (Kubernetes documentation, "Node Status")."""
_NOTHING = Quantity()


class PlacedPod(NamedTuple):
    """A pod that holds a part of a node."""

    node: str
    requests: Amounts
    """Of CPU, memory and devices."""
    training: ObjectKey | None
    """The TrainJob that its JobSet is named after; None where no JobSet has made it."""


@dataclass(slots=True)
class Load:
    """What pods hold of a node."""

    requested: Amounts = field(default_factory=dict)
    pods: Counter[ObjectKey] = field(default_factory=Counter)
    """By training."""
    devices: Counter[ObjectKey] = field(default_factory=Counter)
    others: int = 0
    """Pods of no training."""

    def add(self, pod: PlacedPod) -> None:
        """Count a pod."""
        for name, amount in pod.requests.items():
            self.requested[name] = self.requested.get(name, _NOTHING) + amount
        if pod.training is None:
            self.others += 1
            return
        self.pods[pod.training] += 1
        self.devices[pod.training] += sum(
            int(amount.amount) for name, amount in pod.requests.items() if USUAL_DEVICES.is_device(name)
        )


def loads(pods: Iterable[PlacedPod]) -> dict[str, Load]:
    """What pods hold, by node."""
    found: dict[str, Load] = {}
    for pod in pods:
        found.setdefault(pod.node, Load()).add(pod)
    return found


def is_open(node: Object) -> bool:
    """Whether new pods may be placed on a node, unless taints of its own repel them."""
    is_closed = mapping_at(node, "spec").get("unschedulable") or has_taint(node, OUT_OF_SERVICE)
    return not is_closed and _unready(node) is None


def product_of(node: Object) -> str:
    """What the devices of a node are called; "" where no label says it."""
    return _label(node, _PRODUCTS)


@dataclass(frozen=True, slots=True)
class NodeList:
    """Makes the rows of nodes."""

    held: Mapping[str, Load] | None
    """By node; None where the user may not know it."""
    used: Mapping[str, Mapping[str, float]]
    """CPUs and bytes of memory that are measured, by node; see `utilisation`."""
    claimed: Sequence[DeviceGroup]
    """Devices that pods have by claims."""
    is_claimed_known: bool
    """Whether it is known what of those is in use."""

    def of(self, nodes: Sequence[Object]) -> Object:
        """The rows; of very many those that are in trouble, then those with trainings."""
        devices: dict[str, list[DeviceGroup]] = {}
        for group in self.claimed:
            devices.setdefault(group.node, []).append(group)
        first = sorted(nodes, key=self._rank)[:NODES_SHOWN]
        rows = [self._row(node, devices.get(name_of(node), [])) for node in sorted(first, key=name_of)]
        return {"members": rows, "moreNodes": len(nodes) - len(rows)}

    def _rank(self, node: Object) -> tuple[bool, bool, str]:
        load = self.held.get(name_of(node)) if self.held is not None else None
        return not _troubles(node), not (load and load.pods), name_of(node)

    def _row(self, node: Object, claimed: Sequence[DeviceGroup]) -> Object:
        name = name_of(node)
        load = None if self.held is None else self.held.get(name) or Load()
        used = self.used.get(name, {})
        present = allocatable(node)
        return {
            "name": name,
            "instanceType": _label(node, _INSTANCE_TYPES),
            **_state(node),
            "devices": [
                *_plain_devices(present, load, product_of(node), is_free=is_open(node)),
                *self._claimed_devices(claimed, is_free=is_open(node)),
            ],
            **{
                kind: {
                    "total": float(present.get(kind, _NOTHING).amount),
                    "requested": _requested(load, kind),
                    "used": used.get(kind),
                }
                for kind in PLAIN
            },
            **_trainings(load),
        }

    def _claimed_devices(self, groups: Iterable[DeviceGroup], *, is_free: bool) -> Iterator[Object]:
        for group in groups:
            yield {
                "resource": group.driver,
                "product": group.product,
                "total": group.total,
                "requested": group.used if self.is_claimed_known else None,
                "free": (group.free if is_free else 0) if self.is_claimed_known else None,
            }


def _plain_devices(present: Amounts, load: Load | None, product: str, *, is_free: bool) -> Iterator[Object]:
    for name, amount in present.items():
        if not USUAL_DEVICES.is_device(name) or not amount.amount:
            continue
        requested = _requested(load, name)
        free = None if requested is None else max(float(amount.amount) - requested, 0.0) if is_free else 0.0
        yield {
            "resource": name,
            "product": product,
            "total": float(amount.amount),
            "requested": requested,
            "free": free,
        }


def _requested(load: Load | None, resource: str) -> float | None:
    return None if load is None else float(load.requested.get(resource, _NOTHING).amount)


def _trainings(load: Load | None) -> Object:
    """The trainings of a node, those with most devices first."""
    if load is None:
        return {"trainings": [], "moreTrainings": 0, "otherPods": None}
    keys = sorted(load.pods, key=lambda key: (-load.devices[key], -load.pods[key], key))
    shown = [
        {"namespace": key.namespace, "name": key.name, "pods": load.pods[key], "devices": load.devices[key]}
        for key in keys[:_TRAININGS_SHOWN]
    ]
    return {"trainings": shown, "moreTrainings": len(keys) - len(shown), "otherPods": load.others}


def _state(node: Object) -> Object:
    """What is wrong with a node, the worst first; `why` and `since` are those of the first condition among it."""
    troubles = list(_troubles(node))
    said = next((condition for _, condition in troubles if condition), {})
    return {
        "troubles": [word for word, _ in troubles],
        "why": str(said.get("message") or "")[:_LONGEST_MESSAGE],
        "since": said.get("lastTransitionTime"),
    }


def _troubles(node: Object) -> list[tuple[str, Object]]:
    """Words for what is wrong, each with its condition, which is empty where there is none."""
    found: list[tuple[str, Object]] = []
    if (unready := _unready(node)) is not None:
        found.append(("Not ready" if unready.get("status") == "False" else "Unreachable", unready))
    if has_taint(node, OUT_OF_SERVICE):
        found.append(("Out of service", {}))
    if mapping_at(node, "spec").get("unschedulable"):
        found.append(("Cordoned", {}))
    for kind, word in _TROUBLES.items():
        condition = find_condition(node, kind) or {}
        if condition.get("status") == "True":
            found.append((word, condition))
    return found


def _unready(node: Object) -> Object | None:
    """The condition Ready of a node that is not; a node without any conditions counts as ready."""
    ready = find_condition(node, "Ready")
    if ready is None:
        return {} if objects_in(mapping_at(node, "status").get("conditions")) else None
    return None if ready.get("status") == "True" else ready


def _label(node: Object, names: Iterable[str]) -> str:
    labels = labels_of(node)
    return next((labels[name] for name in names if labels.get(name)), "")
