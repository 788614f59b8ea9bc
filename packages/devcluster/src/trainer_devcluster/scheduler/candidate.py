"""What the scheduler has to know of a pod, read once per version of the object, and which pods belong together.

* **kube-scheduler**: `spec.schedulingGroup` names the PodGroup of the Workload API.
* **coscheduling** of the Kubernetes scheduler-plugins: the label `scheduling.x-k8s.io/pod-group` names the PodGroup.
* **Volcano**: the annotation `scheduling.k8s.io/group-name` does.

The stand-in looks at all pods of a gang at once, so that none holds room while it waits for others: they are bound
together when as many fit as `minCount` or `minMember` asks for and the node has `minResources`. Queues and topology are
not regarded. A pod of theirs that names no PodGroup is scheduled like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib import resources
from typing import Any, Final, NamedTuple

import yaml

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object, ObjectKey, has_finished
from trainer.kube.resource import Resource
from trainer.workloads import DEFAULT_SCHEDULER
from trainer.workloads.pod_requests import pod_requests
from trainer_devcluster.workload_api import POD_GROUPS


@dataclass(frozen=True, slots=True)
class GangScheduler:
    """A scheduler that the dev cluster stands in for."""

    name: str
    """As `--gang-schedulers` has it."""
    scheduler_names: tuple[str, ...]
    """`spec.schedulerName` of its pods: first what its installation calls it by default, then other names
    that its users go by."""
    pod_groups: Resource
    mark: tuple[str, str, str]
    """The field in which a pod names its PodGroup."""
    waiting: str = ""
    """Phase of a PodGroup whose pods are all there and have no node. Default: PodGroups have no phase."""
    ended: str = ""
    """Phase of a PodGroup whose pods have ended."""

    def group_name(self, pod: Mapping[str, Any]) -> str:
        """The PodGroup that a pod names; "" if none."""
        part, section, field = self.mark
        return str((pod[part].get(section) or {}).get(field) or "")


COSCHEDULING: Final = GangScheduler(
    "coscheduling",
    ("scheduler-plugins-scheduler", "coscheduling"),
    Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"),
    ("metadata", "labels", "scheduling.x-k8s.io/pod-group"),
    "Scheduling",
    "Finished",
)
VOLCANO: Final = GangScheduler(
    "volcano",
    ("volcano",),
    Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"),
    ("metadata", "annotations", "scheduling.k8s.io/group-name"),
    "Inqueue",
    "Completed",
)
KUBERNETES: Final = GangScheduler(
    "kubernetes",
    (DEFAULT_SCHEDULER,),
    POD_GROUPS,
    ("spec", "schedulingGroup", "podGroupName"),
)
GANG_SCHEDULERS: Final = {scheduler.name: scheduler for scheduler in (COSCHEDULING, VOLCANO)}
"""By the name that `--gang-schedulers` knows them by."""


def parse_gang_schedulers(text: str) -> tuple[GangScheduler, ...]:
    """Read names from a command line: `coscheduling,volcano`.

    Raises:
        ValueError: there is no such gang scheduler.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in GANG_SCHEDULERS:
            raise ValueError(f"{name!r} is not one of {', '.join(GANG_SCHEDULERS)}")
    return tuple(GANG_SCHEDULERS[name] for name in dict.fromkeys(names))


def definition_of(scheduler: GangScheduler) -> Object:
    """The CustomResourceDefinition of its PodGroups; reads a file."""
    text = (resources.files("trainer_devcluster.scheduler") / "data" / f"{scheduler.name}.yaml").read_bytes()
    definition: Object = yaml.load(text, Loader=yaml.CSafeLoader)
    return definition


_BY_SCHEDULER_NAME = {
    name: scheduler for scheduler in (KUBERNETES, COSCHEDULING, VOLCANO) for name in scheduler.scheduler_names
}
KNOWN_SCHEDULERS: Final = tuple(_BY_SCHEDULER_NAME)
"""Every `spec.schedulerName` for which somebody schedules here."""


class Gang(NamedTuple):
    """The pods of one PodGroup."""

    scheduler: str
    """Name of the `GangScheduler`."""
    namespace: str
    name: str
    """Of the PodGroup."""

    @property
    def key(self) -> ObjectKey:
        """Of the PodGroup."""
        return ObjectKey(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.scheduler}/{self.namespace}/{self.name}"


def gang_of(pod: Mapping[str, Any]) -> Gang | None:
    """The gang of a pod, if a gang scheduler has to schedule it and it names a PodGroup."""
    scheduler = _BY_SCHEDULER_NAME.get(pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER)
    name = scheduler.group_name(pod) if scheduler is not None else ""
    return (
        Gang(scheduler.name, pod["metadata"].get("namespace") or "", name) if scheduler is not None and name else None
    )


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
    is_terminating: bool
    never_preempts: bool
    gang: Gang | None
    ignored: tuple[str, ...]
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
            is_terminating=bool(metadata.get("deletionTimestamp")),
            never_preempts=spec.get("preemptionPolicy") == "Never",
            gang=gang_of(pod),
            ignored=_ignored_fields(spec, affinity),
        )

    @property
    def rank(self) -> tuple[int, str, ObjectKey]:
        """Sorts by whose turn it is: the higher priority first, then who has waited longest."""
        return (-self.priority, self.created, self.key)


def is_waiting(pod: Mapping[str, Any]) -> bool:
    """Whether the pod waits for a node."""
    return not (pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp") or has_finished(pod))


def takes_room(pod: Mapping[str, Any]) -> bool:
    """Whether the pod takes resources of its node; also while it is being deleted, since its processes may live."""
    return bool(pod["spec"].get("nodeName")) and not has_finished(pod)


def _ignored_fields(spec: Object, affinity: Object) -> tuple[str, ...]:
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
