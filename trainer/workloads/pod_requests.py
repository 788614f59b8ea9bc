"""The resources that one pod requests of its node, as the scheduler will see them.

A pod template says less than the pods that are made of it: the API server fills in requests from limits, the admission
plugin LimitRanger those that a LimitRange of the namespace has for containers, and the admission plugin RuntimeClass
the overhead of the pod's runtime (Kubernetes documentation, "Resource Management for Pods and Containers", "Limit
Ranges", "Pod Overhead", "Sidecar Containers").
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from trainer.kube.objects import Object, name_of
from trainer.kube.quantity import Quantity

Amounts: TypeAlias = dict[str, Quantity]
"""Amounts of resources by name, such as `cpu` or `nvidia.com/gpu`."""

_HUGE_PAGES = "hugepages-"
_INSUFFICIENT = re.compile(r"\bInsufficient ([A-Za-z0-9][-A-Za-z0-9_./]*[A-Za-z0-9])")
_NOTHING = Quantity()


def pod_requests(spec: Object, *, limit_ranges: Iterable[Object] = (), runtime_class: Object | None = None) -> Amounts:
    """The effective requests of a pod, which are the sum over its containers or more.

    Init containers run before the others, one after the other, so the largest counts; a sidecar (`restartPolicy:
    Always`) keeps running and is added to everything that starts after it. Requests of the pod as a whole replace
    those of its containers. The overhead of the RuntimeClass counts unless the template has one.

    Raises:
        ValueError: an amount is not a quantity.
    """
    requests = _of_containers(spec, _container_defaults(limit_ranges)) | _of_the_whole_pod(spec)
    overhead = (runtime_class or {}).get("overhead") or {}
    _add(requests, _amounts(spec.get("overhead")) or _amounts(overhead.get("podFixed")))
    return requests


def _of_containers(spec: Object, defaults: Amounts) -> Amounts:
    total: Amounts = {}
    for container in spec.get("containers") or []:
        _add(total, _of_container(container, defaults))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or []:
        requests = _of_container(container, defaults)
        # All others stay as they were when the last sidecar began.
        running = {name: sidecars.get(name, _NOTHING) + amount for name, amount in requests.items()}
        peak |= _larger(running, peak)
        if container.get("restartPolicy") == "Always":
            sidecars |= running
            _add(total, requests)
    return total | _larger(peak, total)


def _of_container(container: Object, defaults: Amounts) -> Amounts:
    """The requests of a container; a limit without a request counts as one, before the defaults of the namespace."""
    resources = container.get("resources") or {}
    return defaults | _amounts(resources.get("limits")) | _amounts(resources.get("requests"))


def _of_the_whole_pod(spec: Object) -> Amounts:
    """`resources` of the pod, which can have the same defaults from limits; LimitRanger comes too late for these."""
    resources = spec.get("resources") or {}
    requests, limits = _amounts(resources.get("requests")), _amounts(resources.get("limits"))
    if limits:
        requests = limits | _of_containers(spec, {}) | requests
    return {name: amount for name, amount in requests.items() if _is_of_pods(name)}


def _is_of_pods(name: str) -> bool:
    """Whether a pod as a whole can have it; all other resources belong to containers."""
    return name in {"cpu", "memory"} or name.startswith(_HUGE_PAGES)


def _container_defaults(limit_ranges: Iterable[Object]) -> Amounts:
    """Requests of containers that say nothing about a resource; the first LimitRange by name that has it decides.

    In each the API server has put the maximum in place of a missing default limit, that in place of a missing default
    request, and the minimum where there is still none.
    """
    defaults: Amounts = {}
    for limit_range in sorted(limit_ranges, key=name_of, reverse=True):
        for item in (limit_range.get("spec") or {}).get("limits") or []:
            if item.get("type") == "Container":
                for kind in ("min", "max", "default", "defaultRequest"):
                    defaults |= _amounts(item.get(kind))
    return defaults


def _amounts(resources: Object | None) -> Amounts:
    return {name: Quantity.parse(amount) for name, amount in (resources or {}).items()}


def _add(total: Amounts, amounts: Amounts) -> None:
    total |= {name: total.get(name, _NOTHING) + amount for name, amount in amounts.items()}


def _larger(amounts: Amounts, others: Amounts) -> Amounts:
    """For each of the amounts, the larger of the two."""
    return {
        name: max(others.get(name, amount), amount, key=lambda each: each.amount) for name, amount in amounts.items()
    }


def scarce_resources(message: str) -> list[str]:
    """The resources of which nodes have too little for a pod, as a message of the scheduler names them."""
    return list(dict.fromkeys(_INSUFFICIENT.findall(message)))
