"""Devices that train, such as GPUs: which resources of Kubernetes are devices, and how many of them a container has.

Device plugins name resources as they like, and many have others beside the devices: shares of the memory or of the
cores of one device. So only names that are known count. The first row of the table of which a container has any
decides, and resources of one row add up: `nvidia.com/mig-1g.5gb: 1` and `nvidia.com/mig-2g.10gb: 1` are two devices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.kube.quantity import whole_units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.framework.plugin_api.runtime_info import Container
    from trainer.kube.objects import Object


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
"""What is a device, the most usual kinds first. A resource that is not in the table is none."""

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
        for kind, expression in _EXPRESSIONS:
            count = sum(whole_units(amount) for name, amount in amounts.items() if expression.fullmatch(name))
            if count > 0:
                return Devices(count, kind.seen_by_torchrun)
    return Devices()


def _amounts(container: Container) -> Iterator[Object]:
    yield container.resources.get("requests") or {}
    yield container.resources.get("limits") or {}
