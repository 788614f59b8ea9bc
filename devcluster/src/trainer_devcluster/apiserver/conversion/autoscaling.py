"""HorizontalPodAutoscalers in autoscaling/v1: one goal for the CPU, and all else that v2 can say in annotations.

Source: Kubernetes API reference, HorizontalPodAutoscaler v1 and v2; the annotations are those of the real server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from trainer.kube.objects import Object

METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
"""Annotation of v1: the metrics that its fields cannot express."""
_BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
_CURRENT: Final = "autoscaling.alpha.kubernetes.io/current-metrics"
_CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"
_ANNOTATIONS: Final[dict[str, type]] = {METRICS: list, _BEHAVIOR: dict, _CURRENT: list, _CONDITIONS: list}
"""The annotations of v1 that hold fields of v2 as JSON, and what that must be."""
_SPEC: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
_STATUS: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
_GOAL: Final = "targetCPUUtilizationPercentage"
_MEASURED: Final = "currentCPUUtilizationPercentage"
_RESOURCE: Final = {
    "name": ("name",),
    "container": ("container",),
    "{}AverageUtilization": ("{}", "averageUtilization"),
    "{}AverageValue": ("{}", "averageValue"),
}
_FIELDS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "Resource": _RESOURCE,
    "ContainerResource": _RESOURCE,
    "Pods": {
        "metricName": ("metric", "name"),
        "selector": ("metric", "selector"),
        "{}AverageValue": ("{}", "averageValue"),
    },
    "Object": {
        "target": ("describedObject",),
        "metricName": ("metric", "name"),
        "selector": ("metric", "selector"),
        "averageValue": ("{}", "averageValue"),
        "{}Value": ("{}", "value"),
    },
    "External": {
        "metricName": ("metric", "name"),
        "metricSelector": ("metric", "selector"),
        "{}AverageValue": ("{}", "averageValue"),
        "{}Value": ("{}", "value"),
    },
}
"""Fields of a metric of v1 and where they are in v2; `{}` is `target` for what is wanted, `current` for what is."""
_TARGET_TYPES: Final = {"averageUtilization": "Utilization", "averageValue": "AverageValue", "value": "Value"}


def to_v1(obj: Object) -> Object:
    """An object of autoscaling/v2 as one of v1."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    metrics, current = spec.get("metrics") or [], status.get("currentMetrics") or []
    others = [_metric_to_v1(metric, "target") for metric in metrics if _utilization(metric, "target") is None]
    written: dict[str, Any] = {
        METRICS: others,
        _BEHAVIOR: spec.get("behavior"),
        _CURRENT: [_metric_to_v1(metric, "current") for metric in current],
        _CONDITIONS: status.get("conditions"),
    }
    texts = {name: msgspec.json.encode(value).decode() for name, value in written.items() if value}
    return {
        **obj,
        "metadata": _annotated(obj["metadata"], texts),
        "spec": {**_only(spec, _SPEC), **_cpu(metrics, "target", _GOAL)},
        "status": {
            "currentReplicas": 0, "desiredReplicas": 0, **_only(status, _STATUS), **_cpu(current, "current", _MEASURED),
        },
    }  # fmt: skip


def to_v2(obj: Object) -> Object:
    """An object of autoscaling/v1 as one of v2, without the defaults of v2.

    Raises:
        ValueError: an annotation does not hold what it is for; the text names it.
    """
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    read: dict[str, Any] = {name: _read(obj, name) for name in _ANNOTATIONS}
    metrics = [_metric_to_v2(metric, "target") for metric in read[METRICS] or ()]
    current = [_metric_to_v2(metric, "current") for metric in read[_CURRENT] or ()]
    if spec.get(_GOAL) is not None:
        metrics.append(_cpu_metric("target", {"type": "Utilization", "averageUtilization": spec[_GOAL]}))
    if not current and status.get(_MEASURED) is not None:
        current.append(_cpu_metric("current", {"averageUtilization": status[_MEASURED]}))
    more_spec: Object = {"metrics": metrics, "behavior": read[_BEHAVIOR]}
    more_status: Object = {"currentMetrics": current, "conditions": read[_CONDITIONS]}
    return {
        **obj,
        "metadata": _annotated(obj["metadata"], {}),
        "spec": {**_only(spec, _SPEC), **{name: value for name, value in more_spec.items() if value}},
        "status": {**_only(status, _STATUS), **{name: value for name, value in more_status.items() if value}},
    }


def _only(section: Object, fields: tuple[str, ...]) -> Object:
    return {field: section[field] for field in fields if field in section}


def _annotated(metadata: Object, texts: dict[str, str]) -> Object:
    """Metadata with these annotations and none of the others that hold fields of v2."""
    kept = {name: text for name, text in (metadata.get("annotations") or {}).items() if name not in _ANNOTATIONS}
    annotations = {**kept, **texts}
    others = {field: value for field, value in metadata.items() if field != "annotations"}
    return {**others, "annotations": annotations} if annotations else others


def _read(obj: Object, name: str) -> Any:
    text = (obj["metadata"].get("annotations") or {}).get(name)
    if text is None:
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"metadata.annotations[{name}]: {error}") from error
    wanted = _ANNOTATIONS[name]
    entries = value if isinstance(value, list) else ()
    if isinstance(value, wanted) and all(isinstance(entry, dict) for entry in entries):
        return value
    shape = "an object" if wanted is dict else "an array of objects"
    raise ValueError(f"metadata.annotations[{name}]: must be {shape}")


def _cpu_metric(side: str, amount: Object) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", side: amount}}


def _cpu(metrics: list[Object], side: str, field: str) -> Object:
    found = [value for metric in metrics if (value := _utilization(metric, side)) is not None]
    return {field: found[-1]} if found else {}


def _utilization(metric: Object, side: str) -> int | None:
    """The share of the requested CPU that a metric is about; None when it is about something else."""
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    share: int | None = (resource.get(side) or {}).get("averageUtilization")
    return share


def _source(metric: Object) -> str:
    """The field of a metric that describes it: `containerResource` for the type ContainerResource."""
    kind = str(metric.get("type") or "")
    return kind[:1].lower() + kind[1:]


def _metric_to_v1(metric: Object, side: str) -> Object:
    source: Object = metric.get(_source(metric)) or {}
    made: Object = {}
    for name, path in _FIELDS.get(str(metric.get("type")), {}).items():
        value: Any = source
        for part in path:
            value = value.get(part.format(side)) if isinstance(value, dict) else None
        if value is not None:
            made[name.format(side)] = value
    return {"type": metric.get("type"), _source(metric): made}


def _metric_to_v2(metric: Object, side: str) -> Object:
    source: Any = metric.get(_source(metric))
    made: Object = {}
    for name, path in _FIELDS.get(str(metric.get("type")), {}).items():
        value = source.get(name.format(side)) if isinstance(source, dict) else None
        if value is None:
            continue
        place: Object = made
        for part in path[:-1]:
            place = place.setdefault(part.format(side), {})
        place[path[-1].format(side)] = value
    goal = made.get("target")
    if side == "target" and isinstance(goal, dict):
        goal["type"] = next(kind for field, kind in _TARGET_TYPES.items() if field in goal)
        if goal["type"] != "Value":
            goal.pop("value", None)
    return {"type": metric.get("type"), _source(metric): made}
