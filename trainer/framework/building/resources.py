"""Compute resources of containers: how those of a TrainJob join those of its runtime, and which are devices."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.api.container import HUGE_PAGES
from trainer.kube.quantity import whole_units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.corev1 import ResourceRequirements
    from trainer.framework.plugin_api.runtime_info import Container
    from trainer.kube.objects import Object


def is_exclusive(name: str) -> bool:
    """Whether a resource is never shared: devices such as `nvidia.com/gpu` (extended resources), and huge pages.

    Kubernetes refuses a container whose request for one is not equal to its limit.
    """
    domain = name.rpartition("/")[0]
    is_device = bool(domain) and not (domain == "kubernetes.io" or domain.endswith(".kubernetes.io"))
    return is_device or name.startswith(HUGE_PAGES)


def merged(resources: Object, changes: ResourceRequirements) -> Object:
    """The resources with changes of single amounts; a device that is only requested, or only limited, gets both.

    KEP-2170 writes `requests: {nvidia.com/gpu: 2}` in `resourcesPerNode`, which Kubernetes refuses without the limit.
    """
    changed = changes.to_object()
    result = dict(resources)
    for kind, amounts in changed.items():
        result[kind] = (result.get(kind) or {}) | amounts if isinstance(amounts, dict) else amounts
    requests, limits = changed.get("requests") or {}, changed.get("limits") or {}
    devices = {name: amount for name, amount in requests.items() if is_exclusive(name) and name not in limits}
    if devices:
        result["limits"] = (result.get("limits") or {}) | devices
    present = result.get("requests") or {}
    followers = {name: amount for name, amount in limits.items() if is_exclusive(name) and name in present}
    if followers:
        result["requests"] = present | {name: requests.get(name, amount) for name, amount in followers.items()}
    return result


def cpus_of(container: Container) -> int:
    """CPUs of a container in whole units, rounded up; 0 when that is not known. Requests count before limits."""
    for amounts in _amounts(container):
        if whole_units(amounts.get("cpu", 0)):
            return whole_units(amounts["cpu"])
    return 0


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """Resources that count the same devices."""

    pattern: str
    """Regular expression of their whole names."""
    seen_by_torchrun: bool = True
    """Whether `torchrun` counts them itself, as GPUs. Defaults to yes."""


KINDS = (
    DeviceKind(r"nvidia\.com/gpu(\.shared)?"),
    DeviceKind(r"nvidia\.com/mig-[0-9]+g\.[0-9]+gb([.+-].*)?(\.shared)?"),
    DeviceKind(r"amd\.com/gpu"),
    DeviceKind(r"gpu\.intel\.com/(i915|xe)"),
    DeviceKind(r"volcano\.sh/v?gpu-number"),
    DeviceKind(r"habana\.ai/gaudi", seen_by_torchrun=False),
    DeviceKind(r"huawei\.com/(npu|Ascend[0-9]+[A-Z0-9]*(-[0-9]+c(\.[0-9]+cpu)?)?)", seen_by_torchrun=False),
    DeviceKind(r"google\.com/tpu", seen_by_torchrun=False),
    DeviceKind(r"aws\.amazon\.com/neuroncore", seen_by_torchrun=False),
    DeviceKind(r"aws\.amazon\.com/neuron(device)?", seen_by_torchrun=False),
    DeviceKind(r"cambricon\.com/(v?mlu|mlu[0-9]+)", seen_by_torchrun=False),
    DeviceKind(r"hygon\.com/dcu(num)?"),
    DeviceKind(r"enflame\.com/gcu", seen_by_torchrun=False),
    DeviceKind(r"kunlunxin\.com/v?xpu", seen_by_torchrun=False),
    # Whoever calls a resource `gpu` counts whole ones, but for Koordinator, which counts hundredths.
    DeviceKind(r"(?!koordinator\.sh/).+/v?(gpu|GPU)"),
)
"""What is a device, the most usual kinds first. Device plugins name resources as they like, and many have others beside
the devices, such as shares of the memory of one: so only names in the table count. The first row of which a container
has any decides, and resources of one row add up: `mig-1g.5gb: 1` and `mig-2g.10gb: 1` are two devices."""

_EXPRESSIONS = tuple((kind, re.compile(kind.pattern)) for kind in KINDS)


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices of a container."""

    count: int = 0
    seen_by_torchrun: bool = True
    """See `DeviceKind`."""


def devices_of(container: Container) -> Devices:
    """The devices of a container; requests count before limits."""
    for amounts in _amounts(container):
        named = [(name, amount) for name, amount in amounts.items() if "/" in name]  # CPUs and memory have no domain
        for kind, expression in _EXPRESSIONS if named else ():
            count = sum(whole_units(amount) for name, amount in named if expression.fullmatch(name))
            if count > 0:
                return Devices(count, kind.seen_by_torchrun)
    return Devices()


def _amounts(container: Container) -> Iterator[Object]:
    yield container.resources.get("requests") or {}
    yield container.resources.get("limits") or {}
