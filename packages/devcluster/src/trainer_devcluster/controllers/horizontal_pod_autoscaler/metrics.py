"""Metrics of an autoscaler: what they are at present, and how many replicas each asks for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from trainer.kube.objects import Object, annotations_of, is_being_deleted, is_condition_true, name_of
from trainer.kube.quantity import Quantity, parse_quantity

_PERCENT = Decimal(100)
PREFIX = "devcluster.trainer/metric-"
"""Begins the annotation; the name of the metric follows. What it says is a quantity: of a pod what that pod uses, of
the autoscaler what each pod uses. For a target of type Utilization a percentage such as `85%` is good as well, of
whatever the pods request."""
_WHOLE = Decimal(100)
_ONE = Decimal(1)
_TOLERANCE = Decimal("0.1")
"""By how much a metric may miss its target without consequences, as a part of one."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The input of one evaluation of an autoscaler."""

    autoscaler: Object
    pods: Sequence[Object]
    """What the selector of its target finds."""
    current: int
    """`spec.replicas` of its target."""


class Proposal(NamedTuple):
    """The number of replicas that one metric proposes."""

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
    kind = metric["type"]
    source: Object = metric[kind.lower()]
    try:
        return _of_resource(source, situation) if kind == "Resource" else _of_pods(source, situation)
    except MetricError as error:
        raise MetricFailure(f"FailedGet{kind}Metric", f"failed to get {_described(kind, source)}: {error}") from error


def _of_resource(source: Object, situation: Situation) -> Proposal:
    name, target = source["name"], source["target"]
    if "averageValue" in target:
        measured = _measure(name, situation)
        wanted = replicas_for(measured, parse_quantity(target["averageValue"]), situation.current)
        current = {"averageValue": _average(measured, target["averageValue"])}
        return Proposal(wanted, f"{name} resource", _entry("Resource", {"name": name}, current))
    measured = _measure(name, situation, utilization=True)
    goal = Decimal(target["averageUtilization"]) / _PERCENT
    wanted = replicas_for(measured, goal, situation.current)
    present: Object = {"averageUtilization": int(measured.ratio(Decimal(1)) * _PERCENT)}
    present["averageValue"] = _average(measured, "")
    entry = _entry("Resource", {"name": name}, present)
    return Proposal(wanted, f"{name} resource utilization (percentage of request)", entry)


def _of_pods(source: Object, situation: Situation) -> Proposal:
    name, target = source["metric"]["name"], source["target"]["averageValue"]
    measured = _measure(name, situation)
    wanted = replicas_for(measured, parse_quantity(target), situation.current)
    entry = _entry("Pods", {"metric": source["metric"]}, {"averageValue": _average(measured, target)})
    return Proposal(wanted, f"pods metric {name}", entry)


def _measure(name: str, situation: Situation, *, utilization: bool = False) -> Measured:
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
            used[name_of(pod)], requested[name_of(pod)] = usage_of_request(reading, *_request(pod, name))
        elif reading.is_percentage:
            raise MetricError(f"annotation {PREFIX}{name} is a percentage, and the target is no utilization")
        else:
            used[name_of(pod)], requested[name_of(pod)] = reading.amount, Decimal(1)
    if not used:
        raise MetricError(_hint(name, situation))
    for pod_name in unready | missing:
        requested[pod_name] = sum(requested.values(), Decimal()) / len(requested)
    return Measured(used, requested, unready, missing)


def _request(pod: Object, name: str) -> tuple[Decimal | None, str]:
    """What the pod requests; and what is said if that is nothing."""
    total = Decimal()
    for container in pod["spec"]["containers"]:
        amount = ((container.get("resources") or {}).get("requests") or {}).get(name)
        if amount is None:
            return None, f"missing request for {name} in container {container['name']} of Pod {name_of(pod)}"
        total += parse_quantity(amount)
    return total, ""


def _present(pods: Iterable[Object]) -> Iterable[Object]:
    """The pods that count."""
    for pod in pods:
        if not is_being_deleted(pod) and (pod.get("status") or {}).get("phase") not in ("Failed", "Succeeded"):
            yield pod


def _is_ready(pod: Object) -> bool:
    return is_condition_true(pod, "Ready")


def _average(measured: Measured, target: object) -> str:
    average = sum(measured.used.values(), Decimal()) / len(measured.used)
    return str(Quantity(average, str(target).endswith("i")))


def _entry(kind: str, labels: Object, current: Object) -> Object:
    return {"type": kind, kind.lower(): labels | {"current": current}}


def _described(kind: str, source: Object) -> str:
    """The metric, in the words of the failure."""
    if kind == "Pods":
        return "pods metric value"
    is_share = "averageUtilization" in source["target"]
    return f"{source['name']} {'utilization' if is_share else 'resource metric value'}"


def _hint(name: str, situation: Situation) -> str:
    target = name_of(situation.autoscaler)
    return f"the dev cluster measures nothing: annotate it or its pods ({target}) with {PREFIX}{name}"


class MetricError(Exception):
    """There is no such metric, or nothing can be made of it."""


class MetricReading(NamedTuple):
    """The value of an annotation."""

    amount: Decimal
    is_percentage: bool = False


def read_metric(obj: Mapping[str, Any], metric: str) -> MetricReading | None:
    """The metric that an object tells, None if it does not.

    Raises:
        MetricError: the annotation is neither a quantity nor a percentage.
    """
    text = annotations_of(obj).get(PREFIX + metric)
    if text is None:
        return None
    try:
        if text.endswith("%"):
            return MetricReading(Decimal(parse_quantity(text[:-1])), is_percentage=True)
        return MetricReading(parse_quantity(text))
    except ValueError as error:
        raise MetricError(f"annotation {PREFIX}{metric} of {name_of(obj)}: {error}") from error


def usage_of_request(reading: MetricReading, request: Decimal | None, missing: str) -> tuple[Decimal, Decimal]:
    """Used and requested amount, whose ratio is the utilization.

    Raises:
        MetricError: with `missing`, if the pod requests nothing that the amount could be compared with.
    """
    if reading.is_percentage:
        return reading.amount, _WHOLE
    if not request:
        raise MetricError(missing)
    return reading.amount, request


@dataclass(frozen=True, slots=True)
class Measured:
    """A metric of pods."""

    used: Mapping[str, Decimal]
    """The metric by pod, of pods that are up and report it."""
    requested: Mapping[str, Decimal]
    """What of each pod the target is a part of: its request, or one for a target that is an amount."""
    unready: AbstractSet[str] = frozenset()
    """Pods that are not up yet."""
    missing: AbstractSet[str] = frozenset()
    """Pods that are up and do not report the metric."""

    def ratio(self, target: Decimal) -> Decimal:
        """How many times the target it is."""
        return sum(self.used.values(), Decimal()) / (
            sum((self.requested[pod] for pod in self.used), Decimal()) * target
        )


def replicas_for(measured: Measured, target: Decimal, current: int) -> int:
    """The number of replicas that brings the average to the target.

    Pods that are not up yet are taken to use nothing, and those of which nothing is known to speak against the change,
    so that it is made with caution.

    Args:
        measured: the metric; at least one pod tells it.
        target: for each pod, as a part of what is `requested`.
        current: the present number.
    """
    ratio = measured.ratio(target)
    if not measured.missing and not (measured.unready and ratio > _ONE):
        return current if _is_close(ratio) else math.ceil(ratio * len(measured.used))
    used = dict(measured.used)
    if ratio < _ONE:
        used |= {pod: measured.requested[pod] * max(_ONE, target) for pod in measured.missing}
    else:
        used |= dict.fromkeys(measured.missing, Decimal())
        used |= dict.fromkeys(measured.unready, Decimal())
    cautious = Measured(used, measured.requested).ratio(target)
    if _is_close(cautious) or (ratio < _ONE) != (cautious < _ONE):
        return current
    wanted = math.ceil(cautious * len(used))
    return current if (cautious < _ONE) == (wanted > current) else wanted


def _is_close(ratio: Decimal) -> bool:
    return _ONE - _TOLERANCE <= ratio <= _ONE + _TOLERANCE
