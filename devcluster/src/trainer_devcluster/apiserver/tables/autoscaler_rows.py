"""Rows of HorizontalPodAutoscalers in tables, after the server-side printers of Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer.kube.objects import metadata_of, name_of
from trainer_devcluster.apiserver.objects.durations import age
from trainer_devcluster.apiserver.tables.pod_rows import NONE

if TYPE_CHECKING:
    from datetime import datetime

    from trainer.kube.objects import Object

_UNKNOWN: Final = "<unknown>"
_SHOWN: Final = 2


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
        age(metadata_of(obj).get("creationTimestamp"), now),
    ]


def _targets(metrics: list[Object], measured: list[Object]) -> str:
    """How much there is and how much is wanted of the first metrics, and how many more there are."""
    present = [*measured, *({} for _ in metrics)]
    texts = [_target(metric, now) for metric, now in zip(metrics, present, strict=False)]
    rest = f" + {len(texts) - _SHOWN} more..." if len(texts) > _SHOWN else ""
    return (", ".join(texts[:_SHOWN]) or NONE) + rest


def _target(metric: Object, measured: Object) -> str:
    kind = metric.get("type") or ""
    # A metric of type ContainerResource is described in the field containerResource, and so on.
    field = kind[:1].lower() + kind[1:]
    source: Object | None = metric.get(field)
    if source is None:
        return "<unknown type>"
    wanted: Object = source.get("target") or {}
    current: Object = (measured.get(field) or {}).get("current") or {}
    if kind in ("Resource", "ContainerResource"):
        return f"{source.get('name') or ''}: {_share(wanted, current)}"
    if "averageValue" not in wanted:
        return f"{current.get('value', _UNKNOWN)}/{wanted.get('value', '<auto>')}"
    average = f"{current.get('averageValue', _UNKNOWN)}/{wanted['averageValue']}"
    return average if kind == "Pods" else f"{average} (avg)"


def _share(wanted: Object, current: Object) -> str:
    if "averageValue" in wanted:
        return f"{current.get('averageValue', _UNKNOWN)}/{wanted['averageValue']}"
    now, goal = current.get("averageUtilization"), wanted.get("averageUtilization")
    return f"{_UNKNOWN if now is None else f'{now}%'}/{'<auto>' if goal is None else f'{goal}%'}"
