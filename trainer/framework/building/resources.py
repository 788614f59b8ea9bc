"""Compute resources of containers: how those of a TrainJob join those of its runtime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainer.api.container import HUGE_PAGES
from trainer.api.corev1 import ResourceRequirements
from trainer.framework.plugin_api.runtime_info import Container
from trainer.kube.objects import Object
from trainer.kube.quantity import whole_units

_KINDS: Final = ("requests", "limits")
_OF_ALL: Final = ("cpu", "memory")
"""What quotas ask every container for."""


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


def completed(resources: Object, defaults: Object) -> Object:
    """The resources with amounts of other ones, of what they state neither a request nor a limit for."""
    result, stated = dict(resources), {name for kind in _KINDS for name in resources.get(kind) or {}}
    for kind in _KINDS:
        amounts = {name: amount for name, amount in (defaults.get(kind) or {}).items() if name not in stated}
        if amounts:
            result[kind] = (result.get(kind) or {}) | amounts
    return result


def without_devices(resources: Object) -> Object:
    """Processors and memory, in the requests and limits that state them."""
    shared = {
        kind: {name: amounts[name] for name in _OF_ALL if name in amounts}
        for kind, amounts in resources.items()
        if kind in _KINDS
    }
    return {kind: amounts for kind, amounts in shared.items() if amounts}


def cpus_of(container: Container) -> int:
    """CPUs of a container in whole units, rounded up; 0 when that is not known. Requests count before limits."""
    for amounts in _amounts(container):
        if whole_units(amounts.get("cpu", 0)):
            return whole_units(amounts["cpu"])
    return 0


def _amounts(container: Container) -> Iterator[Object]:
    return (container.resources.get(kind) or {} for kind in _KINDS)
