"""Validation of the metrics by which a HorizontalPodAutoscaler scales (autoscaling/v2 MetricSpec)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.field_errors import forbidden, invalid, not_supported, required
from trainer.kube.quantity import parse_quantity
from trainer_devcluster.apiserver.kinds.causes import object_reference

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
"""The field that belongs to each type of metric."""
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")
_ALTERNATIVES = {
    "containerResource": (
        "averageUtilization",
        "averageValue",
        "must set either a target raw value or a target utilization",
    ),
    "resource": ("averageUtilization", "averageValue", "must set either a target raw value or a target utilization"),
    "external": ("averageValue", "value", "must set either a target value for metric or a per-pod target"),
    "object": ("averageValue", "value", "must set either a target value or averageValue"),
}
"""By source, the two fields of the target of which one is wanted, and what is said when both are absent."""


def validate_metric(metric: Object, path: str) -> list[FieldError]:
    """What is wrong with one metric."""
    kind = metric.get("type") or ""
    if not kind:
        return [required(f"{path}.type", "must specify a metric source type")]
    if kind not in _SOURCES:
        return [not_supported(f"{path}.type", kind, sorted(_SOURCES))]
    wanted = _SOURCES[kind]
    causes = [
        forbidden(f"{path}.{field}", "must populate the given metric source only")
        for field in _SOURCES.values()
        if field != wanted and metric.get(field) is not None
    ]
    if metric.get(wanted) is None:
        return [*causes, required(f"{path}.{wanted}", "must populate information for the given metric source")]
    return causes + _validate_source(metric[wanted], wanted, f"{path}.{wanted}")


def _validate_source(source: Object, kind: str, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    if kind in ("resource", "containerResource"):
        if not source.get("name"):
            causes.append(required(f"{path}.name", "must specify a resource name"))
        if kind == "containerResource" and not source.get("container"):
            causes.append(required(f"{path}.container", "must specify a container"))
    elif not (source.get("metric") or {}).get("name"):
        causes.append(required(f"{path}.metric.name", "must specify a metric name"))
    if kind == "object":
        causes += object_reference(f"{path}.describedObject", source.get("describedObject"))
    target = source.get("target") or {}
    return causes + _validate_target(target, f"{path}.target") + _validate_choice(target, kind, f"{path}.target")


def _validate_target(target: Object, path: str) -> list[FieldError]:
    kind = target.get("type") or ""
    causes: list[FieldError] = []
    if not kind:
        causes.append(required(f"{path}.type", "must specify a metric target type"))
    elif kind not in _TARGET_TYPES:
        causes.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        amount = target.get(field)
        if amount is not None and parse_quantity(amount) <= 0:
            causes.append(invalid(f"{path}.{field}", amount, "must be positive"))
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        causes.append(invalid(f"{path}.averageUtilization", utilization, "must be greater than 0"))
    return causes


def _validate_choice(target: Object, kind: str, path: str) -> list[FieldError]:
    if kind == "pods":
        missing = target.get("averageValue") is None
        return [required(f"{path}.averageValue", "must specify a positive target averageValue")] if missing else []
    first, second, nothing = _ALTERNATIVES[kind]
    given = [field for field in (first, second) if target.get(field) is not None]
    if not given:
        return [required(f"{path}.{first}", nothing)]
    if len(given) > 1 and kind != "object":
        return [
            forbidden(
                f"{path}.{second}", nothing.replace("must set either", "may not set both").replace(" or ", " and ")
            )
        ]
    return []
