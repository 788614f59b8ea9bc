"""Metrics of an autoscaler: what they are at present, and how many replicas each asks for."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from trainer.kube.objects import is_being_deleted, is_condition_true, name_of
from trainer.kube.quantity import Quantity, parse_quantity
from trainer_devcluster.controllers.horizontal_pod_autoscaler.annotations import (
    PREFIX,
    MetricError,
    read_metric,
    usage_of_request,
)
from trainer_devcluster.controllers.horizontal_pod_autoscaler.replicas import (
    Measured,
    replicas_for,
    replicas_for_share,
    replicas_for_total,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trainer.kube.objects import Object

_PERCENT = Decimal(100)


@dataclass(frozen=True, slots=True)
class Situation:
    """What an autoscaler sees."""

    autoscaler: Object
    pods: Sequence[Object]
    """What the selector of its target finds."""
    current: int
    """`spec.replicas` of its target."""


class Proposal(NamedTuple):
    """What comes of one metric."""

    replicas: int
    name: str
    """As events and conditions call the metric."""
    status: Object
    """Entry of `status.currentMetrics`."""


class MetricFailure(Exception):  # noqa: N818 - it is what the condition tells
    """A metric cannot be had; with the reason of condition and event."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def propose(metric: Object, situation: Situation) -> Proposal:
    """How many replicas a metric asks for.

    Raises:
        MetricFailure: it cannot be had.
    """
    kind = str(metric.get("type") or "")
    field = kind[:1].lower() + kind[1:]
    source: Object = metric.get(field) or {}
    try:
        match kind:
            case "Resource" | "ContainerResource":
                return _of_resource(field, source, situation)
            case "Pods":
                return _of_pods(source, situation)
            case _:
                return _of_all(kind, source, situation)
    except MetricError as error:
        raise MetricFailure(f"FailedGet{kind}Metric", f"failed to get {_told(kind, source)}: {error}") from error


def _of_resource(field: str, source: Object, situation: Situation) -> Proposal:
    name, target, container = source["name"], source["target"], source.get("container") or ""
    prefix = f"{name} container resource" if container else f"{name} resource"
    labels = {"name": name} | ({"container": container} if container else {})
    if "averageValue" in target:
        measured = _measure(name, situation)
        wanted = replicas_for(measured, parse_quantity(target["averageValue"]), situation.current)
        current = {"averageValue": _average(measured, target["averageValue"])}
        return Proposal(wanted, prefix, _entry(field, labels, current))
    measured = _measure(name, situation, container=container, utilization=True)
    goal = Decimal(target["averageUtilization"]) / _PERCENT
    wanted = replicas_for(measured, goal, situation.current)
    present: Object = {"averageUtilization": int(measured.ratio(Decimal(1)) * _PERCENT)}
    present["averageValue"] = _average(measured, "")
    return Proposal(wanted, f"{prefix} utilization (percentage of request)", _entry(field, labels, present))


def _of_pods(source: Object, situation: Situation) -> Proposal:
    name, target = source["metric"]["name"], source["target"]["averageValue"]
    measured = _measure(name, situation)
    wanted = replicas_for(measured, parse_quantity(target), situation.current)
    entry = _entry("pods", {"metric": source["metric"]}, {"averageValue": _average(measured, target)})
    return Proposal(wanted, f"pods metric {name}", entry)


def _of_all(kind: str, source: Object, situation: Situation) -> Proposal:
    """A metric of type Object or External."""
    name, target = source["metric"]["name"], source["target"]
    reading = read_metric(situation.autoscaler, name)
    if reading is None or reading.is_percentage:
        raise MetricError(_hint(name, situation, also_pods=False))
    usage = reading.amount
    if "averageValue" in target:
        goal = parse_quantity(target["averageValue"])
        wanted = replicas_for_share(usage, goal, situation.current)
        share = usage / situation.current if situation.current else usage
        current = {"averageValue": str(Quantity(share, str(target["averageValue"]).endswith("i")))}
    else:
        goal, ready = parse_quantity(target["value"]), len(list(_up(situation.pods)))
        wanted = replicas_for_total(usage, goal, situation.current, ready)
        current = {"value": str(Quantity(usage, str(target["value"]).endswith("i")))}
    if kind == "Object":
        described = source["describedObject"]
        labels = {"metric": source["metric"], "describedObject": described}
        return Proposal(wanted, f"{described['kind']} metric {name}", _entry("object", labels, current))
    label = f"external metric {name}({source['metric'].get('selector') or 'nil'})"
    return Proposal(wanted, label, _entry("external", {"metric": source["metric"]}, current))


def _measure(name: str, situation: Situation, *, container: str = "", utilization: bool = False) -> Measured:
    used: dict[str, Decimal] = {}
    requested: dict[str, Decimal] = {}
    unready, missing = set(), set()
    of_all = read_metric(situation.autoscaler, name)
    for pod in _present(situation.pods):
        reading = read_metric(pod, name) or of_all
        if (pod.get("status") or {}).get("phase") == "Pending" or (name == "cpu" and not _is_ready(pod)):
            unready.add(name_of(pod))
        elif reading is None:
            missing.add(name_of(pod))
        elif utilization:
            used[name_of(pod)], requested[name_of(pod)] = usage_of_request(reading, *_request(pod, name, container))
        elif reading.is_percentage:
            raise MetricError(f"annotation {PREFIX}{name} is a percentage, and the target is no utilization")
        else:
            used[name_of(pod)], requested[name_of(pod)] = reading.amount, Decimal(1)
    if not used:
        raise MetricError(_hint(name, situation, also_pods=True))
    for pod_name in unready | missing:
        requested[pod_name] = sum(requested.values(), Decimal()) / len(requested)
    return Measured(used, requested, unready, missing)


def _request(pod: Object, name: str, container: str) -> tuple[Decimal | None, str]:
    """What the pod, or one container of it, requests; and what is said if that is nothing."""
    total = Decimal()
    for each in pod["spec"]["containers"]:
        if container and each["name"] != container:
            continue
        amount = ((each.get("resources") or {}).get("requests") or {}).get(name)
        if amount is None:
            return None, f"missing request for {name} in container {each['name']} of Pod {name_of(pod)}"
        total += parse_quantity(amount)
    return total, f"container {container} is not in Pod {name_of(pod)}"


def _present(pods: Iterable[Object]) -> Iterable[Object]:
    """The pods that count."""
    for pod in pods:
        if not is_being_deleted(pod) and (pod.get("status") or {}).get("phase") not in ("Failed", "Succeeded"):
            yield pod


def _up(pods: Iterable[Object]) -> Iterable[Object]:
    return (pod for pod in _present(pods) if (pod.get("status") or {}).get("phase") == "Running" and _is_ready(pod))


def _is_ready(pod: Object) -> bool:
    return is_condition_true(pod, "Ready")


def _average(measured: Measured, target: object) -> str:
    average = sum(measured.used.values(), Decimal()) / len(measured.used)
    return str(Quantity(average, str(target).endswith("i")))


def _entry(field: str, labels: Object, current: Object) -> Object:
    return {"type": field[:1].upper() + field[1:], field: labels | {"current": current}}


def _told(kind: str, source: Object) -> str:
    """The metric, in the words of the failure."""
    match kind:
        case "Resource" | "ContainerResource" if "averageUtilization" in source["target"]:
            return f"{source['name']} utilization"
        case "Resource" | "ContainerResource":
            return f"{source['name']} resource metric value"
        case "External":
            return f"{source['metric']['name']} external metric value"
        case _:
            return f"{kind.lower()} metric value"


def _hint(name: str, situation: Situation, *, also_pods: bool) -> str:
    where = "it or its pods" if also_pods else "it"
    target = name_of(situation.autoscaler)
    return f"the dev cluster measures nothing: annotate {where} ({target}) with {PREFIX}{name}"
