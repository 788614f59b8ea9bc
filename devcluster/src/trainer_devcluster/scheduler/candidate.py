"""What the scheduler has to know of a pod, read once per version of the object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer.workloads.pod_requests import pod_requests
from trainer_devcluster.scheduler.gangs import Gang, gang_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal

    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.objects import Object, ObjectKey

DEFAULT_SCHEDULER = "default-scheduler"
FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A pod that waits for a node, or has one; equal to nothing but itself."""

    key: ObjectKey
    uid: str
    created: str
    """`metadata.creationTimestamp`, by which pods of one priority are served."""
    priority: int
    scheduler: str
    """`spec.schedulerName`."""
    requests: Mapping[str, Decimal]
    node_selector: Mapping[str, str]
    node_affinity: Sequence[Object] | None
    """Terms of the required node affinity, one of which has to match; None: there is none."""
    tolerations: Sequence[Object]
    is_gated: bool
    never_preempts: bool
    gang: Gang | None
    moot: tuple[str, ...]
    """Fields that would matter if there were several nodes."""

    @classmethod
    def of(cls, pod: CachedObject) -> Candidate:
        """Read a pod.

        Raises:
            ValueError: an amount is not a quantity.
        """
        spec, metadata = pod["spec"], pod["metadata"]
        scheduler = spec.get("schedulerName") or DEFAULT_SCHEDULER
        affinity = spec.get("affinity") or {}
        required = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
        return cls(
            key=pod.key,
            uid=pod.uid,
            created=metadata.get("creationTimestamp") or "",
            priority=spec.get("priority") or 0,
            scheduler=scheduler,
            requests={name: amount.amount for name, amount in pod_requests(spec).items() if amount.amount},
            node_selector=spec.get("nodeSelector") or {},
            node_affinity=None if required is None else required.get("nodeSelectorTerms") or [],
            tolerations=spec.get("tolerations") or [],
            is_gated=bool(spec.get("schedulingGates")),
            never_preempts=spec.get("preemptionPolicy") == "Never",
            gang=gang_of(scheduler, metadata),
            moot=_moot(spec, affinity),
        )

    @property
    def rank(self) -> tuple[int, str, ObjectKey]:
        """Sorts by whose turn it is: the higher priority first, then who has waited longest."""
        return (-self.priority, self.created, self.key)


def is_waiting(pod: Mapping[str, Any]) -> bool:
    """Whether the pod waits for a node."""
    return not (pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp") or _is_finished(pod))


def takes_room(pod: Mapping[str, Any]) -> bool:
    """Whether the pod takes resources of its node; also while it is being deleted, since its processes may live."""
    return bool(pod["spec"].get("nodeName")) and not _is_finished(pod)


def _is_finished(pod: Mapping[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED


def _moot(spec: Object, affinity: Object) -> tuple[str, ...]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    fields = [
        f"spec.affinity.{kind}"
        for kind in ("podAffinity", "podAntiAffinity")
        if (affinity.get(kind) or {}).get(required)
    ]
    constraints = spec.get("topologySpreadConstraints") or []
    if any(constraint.get("whenUnsatisfiable") == "DoNotSchedule" for constraint in constraints):
        fields.append("spec.topologySpreadConstraints")
    return tuple(fields)
