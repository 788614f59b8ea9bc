"""Rows of workloads that the dev cluster only stores, after the server-side printers of Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer.kube.objects import metadata_of, name_of
from trainer_devcluster.apiserver.objects.durations import age
from trainer_devcluster.apiserver.tables.columns import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    Cells,
    PrintedColumn,
    column,
    stated,
)
from trainer_devcluster.apiserver.tables.pod_rows import NONE, label_selector

if TYPE_CHECKING:
    from datetime import datetime

    from trainer.kube.objects import Object

_APPS: Final = "apps/v1"
_BATCH: Final = "batch/v1"
_POLICY: Final = "policy/v1"


def _age(obj: Object, now: datetime) -> str:
    return age(metadata_of(obj).get("creationTimestamp"), now)


def _number(obj: Object, field: str) -> int:
    return int((obj.get("status") or {}).get(field) or 0)


def _images(template: Object) -> list[Any]:
    containers = (template.get("spec") or {}).get("containers") or []
    return [",".join(str(container.get(field) or "") for container in containers) for field in ("name", "image")]


def _template(obj: Object) -> Object:
    template: Object = (obj.get("spec") or {}).get("template") or {}
    return template


def _selector(obj: Object) -> str:
    return label_selector((obj.get("spec") or {}).get("selector"))


def _wanted(obj: Object) -> int:
    return int((obj.get("spec") or {}).get("replicas") or 0)


def _deployment(obj: Object, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        f"{_number(obj, 'readyReplicas')}/{_wanted(obj)}",
        _number(obj, "updatedReplicas"),
        _number(obj, "availableReplicas"),
        _age(obj, now),
        *_images(_template(obj)),
        _selector(obj),
    ]


def _replica_set(obj: Object, now: datetime) -> list[Any]:
    numbers = [_wanted(obj), _number(obj, "replicas"), _number(obj, "readyReplicas")]
    return [name_of(obj), *numbers, _age(obj, now), *_images(_template(obj)), _selector(obj)]


def _stateful_set(obj: Object, now: datetime) -> list[Any]:
    ready = f"{_number(obj, 'readyReplicas')}/{_wanted(obj)}"
    return [name_of(obj), ready, _age(obj, now), *_images(_template(obj))]


def _daemon_set(obj: Object, now: datetime) -> list[Any]:
    fields = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    nodes = (_template(obj).get("spec") or {}).get("nodeSelector") or {}
    return [
        name_of(obj),
        *(_number(obj, field) for field in (*fields, "numberAvailable")),
        ",".join(f"{key}={value}" for key, value in sorted(nodes.items())) or NONE,
        _age(obj, now),
        *_images(_template(obj)),
        _selector(obj),
    ]


def _cron_job(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    last, job = status.get("lastScheduleTime"), (spec.get("jobTemplate") or {}).get("spec") or {}
    return [
        name_of(obj),
        spec.get("schedule") or "",
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        age(last, now) if last else NONE,
        _age(obj, now),
        *_images(job.get("template") or {}),
        label_selector(job.get("selector")),
    ]


def _disruption_budget(obj: Object, now: datetime) -> list[Any]:
    limits = [(obj.get("spec") or {}).get(field) for field in ("minAvailable", "maxUnavailable")]
    shown = ["N/A" if limit is None else str(limit) for limit in limits]
    return [name_of(obj), *shown, _number(obj, "disruptionsAllowed"), _age(obj, now)]


def _status(name: str, kind: str, field: str, column_type: str = "integer") -> PrintedColumn:
    return column(name, _APPS, kind, "status", field, kind=column_type)


def _selected_by(kind: str) -> PrintedColumn:
    return column("Selector", _APPS, kind, "spec", "selector", priority=1)


_READY: Final = stated("Ready", "Number of the pod with ready state")
_DEPLOYMENT: Final = (
    NAME,
    _READY,
    _status("Up-to-date", "Deployment", "updatedReplicas", "string"),
    _status("Available", "Deployment", "availableReplicas", "string"),
    AGE,
    CONTAINERS,
    IMAGES,
    _selected_by("Deployment"),
)
_REPLICA_SET: Final = (
    NAME,
    column("Desired", _APPS, "ReplicaSet", "spec", "replicas", kind="integer"),
    _status("Current", "ReplicaSet", "replicas"),
    _status("Ready", "ReplicaSet", "readyReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    _selected_by("ReplicaSet"),
)
_DAEMON_SET: Final = (
    NAME,
    _status("Desired", "DaemonSet", "desiredNumberScheduled"),
    _status("Current", "DaemonSet", "currentNumberScheduled"),
    _status("Ready", "DaemonSet", "numberReady"),
    _status("Up-to-date", "DaemonSet", "updatedNumberScheduled"),
    _status("Available", "DaemonSet", "numberAvailable"),
    column("Node Selector", "v1", "Pod", "spec", "nodeSelector"),
    AGE,
    CONTAINERS,
    IMAGES,
    _selected_by("DaemonSet"),
)
_CRON_JOB: Final = (
    NAME,
    column("Schedule", _BATCH, "CronJob", "spec", "schedule"),
    column("Timezone", _BATCH, "CronJob", "spec", "timeZone"),
    column("Suspend", _BATCH, "CronJob", "spec", "suspend", kind="boolean"),
    column("Active", _BATCH, "CronJob", "status", "active", kind="integer"),
    column("Last Schedule", _BATCH, "CronJob", "status", "lastScheduleTime"),
    AGE,
    CONTAINERS,
    IMAGES,
    column("Selector", _BATCH, "Job", "spec", "selector", priority=1),
)
_DISRUPTION_BUDGET: Final = (
    NAME,
    stated("Min Available", "The minimum number of pods that must be available."),
    stated("Max Unavailable", "The maximum number of pods that may be unavailable."),
    stated("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time.", kind="integer"),
    AGE,
)

WORKLOADS: Final[dict[str, tuple[tuple[PrintedColumn, ...], Cells]]] = {
    f"{_APPS}/Deployment": (_DEPLOYMENT, _deployment),
    f"{_APPS}/ReplicaSet": (_REPLICA_SET, _replica_set),
    f"{_APPS}/StatefulSet": ((NAME, _READY, AGE, CONTAINERS, IMAGES), _stateful_set),
    f"{_APPS}/DaemonSet": (_DAEMON_SET, _daemon_set),
    f"{_BATCH}/CronJob": (_CRON_JOB, _cron_job),
    f"{_POLICY}/PodDisruptionBudget": (_DISRUPTION_BUDGET, _disruption_budget),
}
"""Columns and cells by apiVersion and kind."""
