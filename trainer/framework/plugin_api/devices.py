"""The devices of containers, by the names of resources and by claims of Dynamic Resource Allocation (DRA).

Device plugins name resources as they like, and many have others beside the devices, such as the memory of one. So names
count that stand in a table, which the configuration of the manager can extend.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from trainer.framework.plugin_api.plugin_context import Reader
from trainer.kube.objects import Object, ObjectKey, mapping_at, objects_in
from trainer.kube.quantity import whole_units
from trainer.kube.resource import Resource

RESOURCE_CLAIM_TEMPLATES: Final = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
"""The templates of which the claims of pods are made (Kubernetes 1.34 and newer)."""

_MOST_CLAIMED: Final = 32
"""Devices that one claim can be given (AllocationResultsMaxSize of resource.k8s.io/v1)."""


class Unit(StrEnum):
    """The unit of the amounts of a resource."""

    DEVICE = "device"
    """Devices, or slices that look like devices to the container."""
    HUNDREDTH = "hundredth"
    """Hundredths of devices: 200 are two of them, and 50 are a part of one."""
    SHARE = "share"
    """Memory or cores: a container with any amount has one device, unless another resource says how many."""


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """Resources and device classes that count the same devices."""

    source: str
    """Where the names are documented."""
    resources: str = ""
    """Regular expression of whole names of resources. Defaults to none."""
    classes: str = ""
    """Regular expression of whole names of DeviceClasses. Defaults to none."""
    unit: Unit = Unit.DEVICE
    seen_by_torchrun: bool = True
    """Whether `torchrun` counts them itself, as GPUs. Defaults to yes."""


_NVIDIA: Final = "https://github.com/NVIDIA/k8s-device-plugin"
_AMD: Final = "https://instinct.docs.amd.com/projects/k8s-device-plugin, https://github.com/ROCm/k8s-gpu-dra-driver"
_INTEL_PLUGINS: Final = "https://intel.github.io/intel-device-plugins-for-kubernetes/cmd/gpu_plugin/README.html"
_INTEL_CLASSES: Final = "https://github.com/intel/intel-resource-drivers-for-kubernetes"
_GAUDI: Final = (
    "https://docs.habana.ai/en/latest/Installation_Guide/Additional_Installation/Kubernetes_Installation/"
    "Intel_Gaudi_Kubernetes_Device_Plugin.html"
)
_NEURON: Final = "https://docs.aws.amazon.com/eks/latest/userguide/device-management-neuron.html"
_CAMBRICON: Final = "https://github.com/Cambricon/cambricon-k8s-device-plugin"
_HAMI: Final = "https://github.com/Project-HAMi/HAMi/blob/master/charts/hami/values.yaml"
_ASCEND: Final = "https://gitcode.com/Ascend/mind-cluster"
_VOLCANO: Final = "https://github.com/volcano-sh/volcano/blob/master/docs/user-guide/how_to_use_volcano_vgpu.md"
_KOORDINATOR: Final = "https://koordinator.sh/docs/user-manuals/device-scheduling-gpu-share"

KINDS: Final = (
    DeviceKind(_NVIDIA, r"nvidia\.com/gpu(\.shared)?", r"gpu\.nvidia\.com"),
    # The plugin writes the + of a profile as a dot: 1g.10gb+me is mig-1g.10gb.me.
    DeviceKind(_NVIDIA, r"nvidia\.com/mig-[0-9]+g\.[0-9]+gb([.+-].*)?(\.shared)?", r"mig\.nvidia\.com"),
    DeviceKind(_AMD, r"amd\.com/(gpu|[sdtqc]px_nps[0-9]+)", r"gpu\.amd\.com"),
    DeviceKind(f"{_INTEL_PLUGINS}, {_INTEL_CLASSES}", r"gpu\.intel\.com/(i915|xe)", r"gpu\.intel\.com"),
    DeviceKind(_VOLCANO, r"volcano\.sh/v?gpu-number"),
    DeviceKind(f"{_GAUDI}, {_INTEL_CLASSES}", r"habana\.ai/gaudi", r"gaudi\.intel\.com", seen_by_torchrun=False),
    # Chips (Ascend910B4-1 is one) and their parts (Ascend310P-4c.3cpu).
    DeviceKind(
        f"{_ASCEND}, {_HAMI}",
        r"huawei\.com/(npu|Ascend[0-9]+[A-Z0-9]*(-[0-9]+(c(\.[0-9]+cpu)?)?)?)",
        seen_by_torchrun=False,
    ),
    DeviceKind(
        "https://cloud.google.com/kubernetes-engine/docs/concepts/tpus",
        r"google\.com/tpu",
        r"tpu\.google\.com",
        seen_by_torchrun=False,
    ),
    # A device has several cores, each of which runs a process. Neuron 2.20 and newer has no neurondevice.
    DeviceKind(_NEURON, r"aws\.amazon\.com/neuroncore", seen_by_torchrun=False),
    DeviceKind(_NEURON, r"aws\.amazon\.com/neuron(device)?", r"neuron\.aws\.com", seen_by_torchrun=False),
    DeviceKind(
        f"{_CAMBRICON}, {_HAMI}", r"cambricon\.com/(v?mlu|mlu[0-9]+)(\.share|\.mim-.+)?", seen_by_torchrun=False
    ),
    DeviceKind(_HAMI, r"hygon\.com/[dh]cu(num)?"),  # dcunum in older releases
    DeviceKind(_HAMI, r"(metax-tech|mthreads)\.com/[sv]?gpu|iluvatar\.ai/([A-Z0-9-]+-)?v?gpu"),
    DeviceKind(_HAMI, r"enflame\.com/(v|drs-|shared-)?gcu", seen_by_torchrun=False),  # vgcu in older releases
    DeviceKind(_HAMI, r"kunlunxin\.com/v?xpu", seen_by_torchrun=False),
    DeviceKind(_KOORDINATOR, r"koordinator\.sh/gpu(-memory-ratio)?", unit=Unit.HUNDREDTH),
    DeviceKind("whoever calls a resource gpu counts whole ones", r".+/v?(gpu|GPU)", r"gpu\..+"),
    DeviceKind(
        f"memory and cores of {_HAMI}, {_VOLCANO}, {_KOORDINATOR}",
        r".+gpu[-_.]?(mem|core|ratio|percent).*",
        unit=Unit.SHARE,
    ),
    DeviceKind(f"cores of {_ASCEND}", r"huawei\.com/npu-core", unit=Unit.SHARE, seen_by_torchrun=False),
)
"""The known kinds of devices; the first that a container has any of decides."""


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices of a container."""

    count: int = 0
    seen_by_torchrun: bool = True
    """See `DeviceKind`."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """Devices that a container gets by a claim."""

    device_class: str
    """Name of their DeviceClass; "" when the claim cannot be read."""
    count: int


class DeviceTable:
    """Finds the devices of containers.

    Args:
        own: kinds that come before the usual ones. Defaults to none.
        reader: has the ResourceClaimTemplates. Defaults to none, with which no claim can be read.
    """

    def __init__(self, own: Iterable[DeviceKind] = (), reader: Reader | None = None) -> None:
        self._kinds = (*own, *KINDS)
        self._reader = reader
        names = [re.compile(kind.resources) if kind.resources else None for kind in self._kinds]
        classes = [re.compile(kind.classes) if kind.classes else None for kind in self._kinds]
        # Tenants choose the names: what is remembered of them is bounded.
        self._row_of_resource = lru_cache(1024)(lambda name: _row(names, name))
        self._row_of_class = lru_cache(1024)(lambda name: _row(classes, name))

    def __deepcopy__(self, _memo: object) -> DeviceTable:
        return self

    @property
    def reads_claims(self) -> bool:
        """Whether ResourceClaimTemplates, which are immutable, have to be cached."""
        return self._reader is not None

    def is_device(self, resource: str) -> bool:
        """Whether amounts of a resource are numbers of devices."""
        row = self._row_of_resource(resource) if "/" in resource else None
        return row is not None and self._kinds[row].unit is Unit.DEVICE

    def devices_of(self, resources: Object, pod: Object, namespace: str, *, by_name: bool = False) -> Devices:
        """The devices of a container; requests count before limits.

        Args:
            resources: of the container.
            pod: spec of its pod, for the claims.
            namespace: of the pod.
            by_name: a resource also counts that only has `gpu` in its name, as in Kubeflow Trainer (Go), and a claim
                that cannot be read counts nothing. Defaults to false: such a claim is one GPU.
        """
        claimed = list(self._claimed(objects_in(resources.get("claims")), pod, namespace))
        for amounts in (mapping_at(resources, "requests"), mapping_at(resources, "limits")):
            found = self._found(amounts, claimed) or (_with_gpu_in_name(amounts) if by_name else None)
            if found:
                return found
        return Devices(1) if not by_name and any(not each.device_class for each in claimed) else Devices()

    def _found(self, amounts: Object, claimed: Iterable[Claimed]) -> Devices | None:
        counts: dict[int, list[int]] = {}
        for name, amount in amounts.items():
            if "/" in name and (row := self._row_of_resource(name)) is not None:  # CPUs and memory have no domain
                counts.setdefault(row, []).append(whole_units(amount))
        for each in claimed:
            if (row := self._row_of_class(each.device_class)) is not None:
                counts.setdefault(row, []).append(each.count)
        for row in sorted(counts):
            kind = self._kinds[row]
            count = _count(counts[row], kind.unit)
            if count > 0:
                return Devices(count, kind.seen_by_torchrun)
        return None

    def _claimed(self, claims: list[Object], pod: Object, namespace: str) -> Iterator[Claimed]:
        pod_claims = {each.get("name"): each for each in objects_in(pod.get("resourceClaims"))} if claims else {}
        for claim in claims:
            template = pod_claims.get(claim.get("name"), {}).get("resourceClaimTemplateName")
            found = self._template(ObjectKey(namespace, template)) if isinstance(template, str) else None
            if found is None:
                yield Claimed("", 1)
                continue
            wanted = str(claim.get("request") or "").partition("/")[0]
            for request in objects_in(mapping_at(found, "spec", "spec", "devices").get("requests")):
                if wanted in {"", request.get("name")}:
                    yield from _requested(request)

    def _template(self, key: ObjectKey) -> Object | None:
        return self._reader.get(RESOURCE_CLAIM_TEMPLATES, key) if self._reader else None


def _row(expressions: list[re.Pattern[str] | None], name: str) -> int | None:
    """The first expression that a name matches."""
    found = (row for row, expression in enumerate(expressions) if expression and expression.fullmatch(name))
    return next(found, None)


def _count(amounts: list[int], unit: Unit) -> int:
    if unit is Unit.DEVICE:
        return sum(amounts)  # mig-1g.5gb: 1 and mig-2g.10gb: 1 are two
    return min(max(amounts), 1) if unit is Unit.SHARE else -(-max(amounts) // 100)


def _requested(request: Object) -> Iterator[Claimed]:
    """The devices of a request; of several alternatives, the class of the first and the least number."""
    exactly = mapping_at(request, "exactly")
    if exactly.get("adminAccess"):
        return  # to watch over devices that others use
    alternatives = [exactly] if exactly else objects_in(request.get("firstAvailable"))
    if alternatives:
        yield Claimed(str(alternatives[0].get("deviceClassName") or ""), min(map(_number, alternatives)))


def _number(request: Object) -> int:
    """The number of devices; 1 where it is that of the node (`allocationMode: All`)."""
    count = request.get("count")
    return min(count, _MOST_CLAIMED) if isinstance(count, int) and count > 0 else 1


def _with_gpu_in_name(amounts: Object) -> Devices | None:
    """The devices of the first resource, by name, that Kubeflow Trainer (Go) takes for a GPU."""
    named = (whole_units(amounts[name]) for name in sorted(amounts) if "gpu" in name.lower())
    count = next((each for each in named if each > 0), 0)
    return Devices(count) if count else None


USUAL_DEVICES: Final = DeviceTable()
"""The table without extensions, for the devices that stand in resources."""
