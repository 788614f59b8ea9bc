"""The field that requests what a scheduler or a quota refuses: an amount, a node of some kind, a tainted node.

Nodes are not read: a manager that may list them knows more than a TrainJob needs. The scheduler says how many nodes
lack what, and the fields say how much is asked for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainer.api.jobset_labels import REPLICATED_JOB
from trainer.kube.objects import labels_of
from trainer.kube.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainer.kube.objects import Object

_INSUFFICIENT = re.compile(r"\bInsufficient ([A-Za-z0-9][-A-Za-z0-9_./]*[A-Za-z0-9])")
_QUOTA = re.compile(r"\bexceeded quota: [^, ]+, requested: ([^ ]+)")
_SELECTOR = re.compile(r"didn't match (?:Pod's node affinity/selector|node selector)")
_TAINT = re.compile(r"had untolerated taint")

_PLACES = ("containers", "initContainers")
_KINDS = ("requests", "limits")
"""The scheduler counts requests, which default to the limits."""


def fields_asking(message: str, replicated_job: str, pods: Object, spec: Object, runtime: str) -> list[str]:
    """The fields with their values; empty if the message names no such request.

    Args:
        message: of the scheduler, or of the admission of pods.
        replicated_job: name of that of the pods.
        pods: spec of the pods.
        spec: of the TrainJob.
        runtime: path of the pods' spec in the runtime.
    """
    resources = _resources(message)
    if resources:
        return [field for name in resources for field in _amount(name, pods, spec, runtime)]
    overrides = list(_overrides(spec, replicated_job))
    if _SELECTOR.search(message):
        own = [f"{path}.nodeSelector: {_pairs(override['nodeSelector'])} asked for" for path, override in overrides
               if override.get("nodeSelector")]  # fmt: skip
        return own or list(_selection(pods, runtime))
    if _TAINT.search(message):
        own = [f"{path}.tolerations" for path, override in overrides if override.get("tolerations")]
        in_runtime = [f"{runtime}.tolerations"] if pods.get("tolerations") else []
        return own or in_runtime or ["spec.podSpecOverrides[].tolerations: not set"]
    return []


def replicated_job_of(pod: Object) -> str:
    """Name of the replicated Job of a pod, or of a Job."""
    return labels_of(pod).get(REPLICATED_JOB, "")


def _resources(message: str) -> Sequence[str]:
    found = dict.fromkeys(_INSUFFICIENT.findall(message))
    quota = _QUOTA.search(message)
    for part in quota[1].split(",") if quota else ():
        name = part.partition("=")[0].removeprefix("requests.").removeprefix("limits.")
        found[name] = None
    return list(found)


def _amount(name: str, pods: Object, spec: Object, runtime: str) -> Iterator[str]:
    """The field that requests a resource: the TrainJob's if the pods have its amount."""
    asked = [
        (f"{runtime}.{place}[{container.get('name')}].resources.{kind}[{name}]", amount)
        for place in _PLACES
        for container in pods.get(place) or []
        for kind in _KINDS
        if (amount := ((container.get("resources") or {}).get(kind) or {}).get(name)) is not None
    ]
    own = (spec.get("trainer") or {}).get("resourcesPerNode") or {}
    for kind in _KINDS:
        amount = (own.get(kind) or {}).get(name)
        if amount is not None and any(_equal(amount, other) for _, other in asked):
            yield f"spec.trainer.resourcesPerNode.{kind}[{name}]: {amount} requested"
            return
    if asked:
        path, amount = asked[0]
        yield f"{path}: {amount} requested"


def _equal(one: object, other: object) -> bool:
    try:
        return parse_quantity(one) == parse_quantity(other)
    except ValueError:
        return False


def _overrides(spec: Object, replicated_job: str) -> Iterator[tuple[str, Object]]:
    for index, override in enumerate(spec.get("podSpecOverrides") or []):
        if replicated_job in {target.get("name", "").lower() for target in override.get("targetJobs") or []}:
            yield f"spec.podSpecOverrides[{index}]", override


def _selection(pods: Object, runtime: str) -> Iterator[str]:
    if pods.get("nodeSelector"):
        yield f"{runtime}.nodeSelector: {_pairs(pods['nodeSelector'])} asked for"
    if (pods.get("affinity") or {}).get("nodeAffinity"):
        yield f"{runtime}.affinity.nodeAffinity"


def _pairs(labels: Object) -> str:
    return ",".join(f"{name}={value}" for name, value in labels.items())
