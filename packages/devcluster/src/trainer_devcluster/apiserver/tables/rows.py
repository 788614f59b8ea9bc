"""Rows: columns and cells of the built-in kinds that need no algorithm of their own.

The columns have the descriptions that the API documentation has for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from trainer.kube.objects import Object, is_being_deleted, is_condition_true, labels_of, metadata_of, name_of
from trainer_devcluster.apiserver.objects.built_in_types import description_of, object_meta
from trainer_devcluster.apiserver.objects.durations import UNKNOWN, age
from trainer_devcluster.apiserver.tables.pod_rows import NONE, job_cells, pod_cells

Cells: TypeAlias = Callable[["Object", "datetime"], list[Any]]
"""Makes the cells of one row, as seen at a time."""


@dataclass(frozen=True, slots=True)
class PrintedColumn:
    """A column of a built-in kind."""

    name: str
    described_by: tuple[str, ...] = ()
    """apiVersion, kind and path of the field that documents it; Name and Age know theirs."""
    description: str = ""
    """Text of a column that is no field."""
    priority: int = 0
    """Greater than 0 for columns of wide output."""
    type: str = "string"
    format: str = ""

    def to_object(self) -> Object:
        """The TableColumnDefinition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or self._documentation(),
            "priority": self.priority,
        }

    def _documentation(self) -> str:
        metadata = {"Name": "name", "Age": "creationTimestamp"}
        if self.described_by:
            return description_of(*self.described_by)
        field = object_meta().field(metadata.get(self.name, ""))
        return str(field.schema.get("description") or "") if field is not None else ""


NAME: Final = PrintedColumn("Name", format="name")
AGE: Final = PrintedColumn("Age")
CONTAINERS: Final = PrintedColumn("Containers", description="Names of each container in the template.", priority=1)
IMAGES: Final = PrintedColumn("Images", description="Images referenced by each container in the template.", priority=1)


def column(name: str, *described_by: str, priority: int = 0, kind: str = "string") -> PrintedColumn:
    """A column that shows a field: apiVersion, kind and path of the field follow the name."""
    return PrintedColumn(name, described_by, priority=priority, type=kind)


def stated(name: str, description: str, priority: int = 0, kind: str = "string") -> PrintedColumn:
    """A column that shows no field, with its own description."""
    return PrintedColumn(name, description=description, priority=priority, type=kind)


_UNSET: Final = "<unset>"
_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
}  # fmt: skip
_ROLE_LABEL: Final = "node-role.kubernetes.io/"
_AUTOSCALING: Final = "autoscaling/v2"
_POD = (
    NAME,
    stated("Ready", "The aggregate readiness state of this pod for accepting traffic."),
    stated("Status", "The aggregate status of the containers in this pod."),
    stated(
        "Restarts",
        "The number of times the containers in this pod have been restarted and when the last container in this pod "
        "has restarted.",
    ),
    AGE,
    column("IP", "v1", "Pod", "status", "podIP", priority=1),
    column("Node", "v1", "Pod", "spec", "nodeName", priority=1),
    column("Nominated Node", "v1", "Pod", "status", "nominatedNodeName", priority=1),
    column("Readiness Gates", "v1", "Pod", "spec", "readinessGates", priority=1),
)
_JOB = (
    NAME,
    stated("Status", "Status of the job."),
    column("Completions", "batch/v1", "Job", "status", "succeeded"),
    stated("Duration", "Time required to complete the job."),
    AGE,
    CONTAINERS,
    IMAGES,
    column("Selector", "batch/v1", "Job", "spec", "selector", priority=1),
)
_NODE = (
    NAME,
    stated("Status", "The status of the node"),
    stated("Roles", "The roles of the node"),
    AGE,
    column("Version", "v1", "Node", "status", "nodeInfo", "kubeletVersion"),
    column("Internal-IP", "v1", "Node", "status", "addresses", priority=1),
    column("External-IP", "v1", "Node", "status", "addresses", priority=1),
    column("OS-Image", "v1", "Node", "status", "nodeInfo", "osImage", priority=1),
    column("Kernel-Version", "v1", "Node", "status", "nodeInfo", "kernelVersion", priority=1),
    column("Container-Runtime", "v1", "Node", "status", "nodeInfo", "containerRuntimeVersion", priority=1),
)
_SERVICE = (
    NAME,
    column("Type", "v1", "Service", "spec", "type"),
    column("Cluster-IP", "v1", "Service", "spec", "clusterIP"),
    column("External-IP", "v1", "Service", "spec", "externalIPs"),
    column("Port(s)", "v1", "Service", "spec", "ports"),
    AGE,
    column("Selector", "v1", "Service", "spec", "selector", priority=1),
)
_EVENT = (
    column("Last Seen", "v1", "Event", "lastTimestamp"),
    column("Type", "v1", "Event", "type"),
    column("Reason", "v1", "Event", "reason"),
    column("Object", "v1", "Event", "involvedObject"),
    column("Subobject", "v1", "Event", "involvedObject", "fieldPath", priority=1),
    column("Source", "v1", "Event", "source", priority=1),
    column("Message", "v1", "Event", "message"),
    column("First Seen", "v1", "Event", "firstTimestamp", priority=1),
    column("Count", "v1", "Event", "count", priority=1),
    PrintedColumn("Name", format="name", priority=1),
)
_CLAIM = (
    NAME,
    column("Status", "v1", "PersistentVolumeClaim", "status", "phase"),
    column("Volume", "v1", "PersistentVolumeClaim", "spec", "volumeName"),
    column("Capacity", "v1", "PersistentVolumeClaim", "status", "capacity"),
    column("Access Modes", "v1", "PersistentVolumeClaim", "status", "accessModes"),
    column("StorageClass", "v1", "PersistentVolumeClaim", "spec", "storageClassName"),
    column("VolumeAttributesClass", "v1", "PersistentVolumeClaim", "spec", "volumeAttributesClassName"),
    AGE,
    column("VolumeMode", "v1", "PersistentVolumeClaim", "spec", "volumeMode", priority=1),
)
_AUTOSCALER = (
    NAME,
    column("Reference", _AUTOSCALING, "HorizontalPodAutoscaler", "spec", "scaleTargetRef"),
    column("Targets", _AUTOSCALING, "HorizontalPodAutoscaler", "spec", "metrics"),
    column("MinPods", _AUTOSCALING, "HorizontalPodAutoscaler", "spec", "minReplicas"),
    column("MaxPods", _AUTOSCALING, "HorizontalPodAutoscaler", "spec", "maxReplicas"),
    column("Replicas", _AUTOSCALING, "HorizontalPodAutoscaler", "status", "currentReplicas"),
    AGE,
)
_UNKNOWN: Final = "<unknown>"
_SHOWN: Final = 2


def _created(obj: Object) -> object:
    return metadata_of(obj).get("creationTimestamp")


def _between_name_and_age(cells: Callable[[Object], list[Any]]) -> Cells:
    return lambda obj, now: [name_of(obj), *cells(obj), age(_created(obj), now)]


def _spec(obj: Object) -> Object:
    return obj.get("spec") or {}


def _status(obj: Object) -> Object:
    return obj.get("status") or {}


def _node(obj: Object, now: datetime) -> list[Any]:
    info, addresses = _status(obj).get("nodeInfo") or {}, _status(obj).get("addresses") or []
    by_type = {entry.get("type"): entry.get("address") for entry in reversed(addresses)}
    conditions = ["Ready" if is_condition_true(obj, "Ready") else "NotReady"]
    if _spec(obj).get("unschedulable"):
        conditions.append("SchedulingDisabled")
    roles = sorted(label.removeprefix(_ROLE_LABEL) for label in labels_of(obj) if label.startswith(_ROLE_LABEL))
    return [
        name_of(obj),
        ",".join(conditions),
        ",".join(roles) or NONE,
        age(_created(obj), now),
        info.get("kubeletVersion") or "",
        by_type.get("InternalIP") or NONE,
        by_type.get("ExternalIP") or NONE,
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _service(obj: Object, now: datetime) -> list[Any]:
    spec = _spec(obj)
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    return [
        name_of(obj),
        spec.get("type") or "ClusterIP",
        spec.get("clusterIP") or NONE,
        spec.get("externalName") or NONE,
        ",".join(f"{port.get('port')}/{port.get('protocol') or 'TCP'}" for port in spec.get("ports") or ()) or NONE,
        age(_created(obj), now),
        selector or NONE,
    ]


def _event(obj: Object, now: datetime) -> list[Any]:
    involved, source, series = (obj.get(field) or {} for field in ("involvedObject", "source", "series"))
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    component = source.get("component") or obj.get("reportingComponent") or ""
    return [
        age(series.get("lastObservedTime") or obj.get("lastTimestamp") or first, now),
        obj.get("type") or "",
        obj.get("reason") or "",
        f"{str(involved.get('kind') or '').lower()}/{involved.get('name') or ''}",
        involved.get("fieldPath") or "",
        ", ".join(filter(None, (component, source.get("host") or obj.get("reportingInstance") or ""))),
        str(obj.get("message") or "").strip(),
        age(first, now),
        series.get("count") or obj.get("count") or 1,
        name_of(obj),
    ]


def _claim(obj: Object, now: datetime) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    volume = spec.get("volumeName") or ""
    phase = "Terminating" if is_being_deleted(obj) else status.get("phase") or ""
    modes = [_ACCESS_MODES.get(mode, mode) for mode in status.get("accessModes") or ()] if volume else []
    return [
        name_of(obj),
        phase,
        volume,
        (status.get("capacity") or {}).get("storage", "") if volume else "",
        ",".join(modes),
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or _UNSET,
        age(_created(obj), now),
        spec.get("volumeMode") or _UNSET,
    ]


def autoscaler_cells(obj: Object, now: datetime) -> list[Any]:
    """Name, reference, targets, least and most pods, replicas, age."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    least = spec.get("minReplicas")
    return [
        name_of(obj),
        f"{target.get('kind') or ''}/{target.get('name') or ''}",
        _targets(spec.get("metrics") or [], status.get("currentMetrics") or []),
        "<unset>" if least is None else str(least),
        spec.get("maxReplicas") or 0,
        status.get("currentReplicas") or 0,
        age(_created(obj), now),
    ]


def _targets(metrics: list[Object], measured: list[Object]) -> str:
    """How much there is and how much is wanted of the first metrics, and how many more there are."""
    present = [*measured, *({} for _ in metrics)]
    texts = [_target(metric, now) for metric, now in zip(metrics, present, strict=False)]
    rest = f" + {len(texts) - _SHOWN} more..." if len(texts) > _SHOWN else ""
    return (", ".join(texts[:_SHOWN]) or NONE) + rest


def _target(metric: Object, measured: Object) -> str:
    field = str(metric.get("type")).lower()
    source: Object = metric.get(field) or {}
    shown = _share(source.get("target") or {}, (measured.get(field) or {}).get("current") or {})
    return shown if field == "pods" else f"{source.get('name') or ''}: {shown}"


def _share(wanted: Object, current: Object) -> str:
    if "averageValue" in wanted:
        return f"{current.get('averageValue', _UNKNOWN)}/{wanted['averageValue']}"
    now, goal = current.get("averageUtilization"), wanted.get("averageUtilization")
    return f"{_UNKNOWN if now is None else f'{now}%'}/{'<auto>' if goal is None else f'{goal}%'}"


PRINTED_KINDS: Final[dict[str, tuple[tuple[PrintedColumn, ...], Cells]]] = {
    "v1/Namespace": (
        (NAME, stated("Status", "The status of the namespace"), AGE),
        _between_name_and_age(lambda obj: [_status(obj).get("phase") or ""]),
    ),
    "v1/Node": (_NODE, _node),
    "v1/Pod": (_POD, pod_cells),
    "v1/Service": (_SERVICE, _service),
    "v1/ConfigMap": (
        (NAME, column("Data", "v1", "ConfigMap", "data"), AGE),
        _between_name_and_age(lambda obj: [len(obj.get("data") or ()) + len(obj.get("binaryData") or ())]),
    ),
    "v1/Secret": (
        (NAME, column("Type", "v1", "Secret", "type"), column("Data", "v1", "Secret", "data"), AGE),
        _between_name_and_age(lambda obj: [obj.get("type") or "", len(obj.get("data") or ())]),
    ),
    "v1/Event": (_EVENT, _event),
    "v1/PersistentVolumeClaim": (_CLAIM, _claim),
    "batch/v1/Job": (_JOB, job_cells),
    f"{_AUTOSCALING}/HorizontalPodAutoscaler": (_AUTOSCALER, autoscaler_cells),
    "coordination.k8s.io/v1/Lease": (
        (NAME, column("Holder", "coordination.k8s.io/v1", "Lease", "spec", "holderIdentity"), AGE),
        _between_name_and_age(lambda obj: [_spec(obj).get("holderIdentity") or ""]),
    ),
}
