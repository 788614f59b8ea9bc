"""Metrics of an autoscaler: what annotations say that they are, and how many replicas each asks for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    """How many replicas a metric asks for, going by the pods that are up and have it.

    Raises:
        MetricFailure: it cannot be had.
    """
    kind = metric["type"]
    source: Object = metric[kind.lower()]
    share = source["target"].get("averageUtilization")
    label = {"name": source["name"]} if kind == "Resource" else {"metric": source["metric"]}
    name = source["name"] if kind == "Resource" else source["metric"]["name"]
    try:
        ratio, average, count = _measure(name, source["target"], situation)
    except ValueError as error:
        noun = f"{name} {'resource metric value' if share is None else 'utilization'}"
        noun = noun if kind == "Resource" else "pods metric value"
        raise MetricFailure(f"FailedGet{kind}Metric", f"failed to get {noun}: {error}") from error
    wanted = situation.current
    if abs(ratio - 1) > _TOLERANCE:
        # Pods that start, or say nothing, hold up the change and never turn it round.
        wanted = (max if ratio > 1 else min)(wanted, math.ceil(ratio * count))
    present: Object = {"averageValue": str(average)}
    if share is not None:
        present["averageUtilization"] = int(ratio * share)
    shown = f"pods metric {name}" if kind == "Pods" else f"{name} resource"
    shown += "" if share is None else " utilization (percentage of request)"
    return Proposal(wanted, shown, {"type": kind, kind.lower(): label | {"current": present}})


def _measure(name: str, target: Object, situation: Situation) -> tuple[Decimal, Quantity, int]:
    """How many times the target the metric is, what it is for each pod, and the number of pods that have it."""
    share = target.get("averageUtilization")
    goal = parse_quantity(target["averageValue"]) if share is None else Decimal(share) / _PERCENT
    used = base = Decimal()
    count = 0
    for pod in situation.pods:
        text = _stated(pod, name) or _stated(situation.autoscaler, name)
        if not text or not _counts(pod, name):
            continue
        amount, is_percentage = _read(text, name)
        if share is None and is_percentage:
            raise ValueError(f"annotation {PREFIX}{name} is a percentage, and the target is no utilization")
        used += amount
        base += 1 if share is None else _PERCENT if is_percentage else _request(pod, name)
        count += 1
    if not count:
        hint = f"annotate it or its pods ({name_of(situation.autoscaler)}) with {PREFIX}{name}"
        raise ValueError(f"the dev cluster measures nothing: {hint}")
    return used / (base * goal), Quantity(used / count, str(target.get("averageValue")).endswith("i")), count


def _counts(pod: Object, name: str) -> bool:
    """Whether the pod is up, and for cpu also ready."""
    is_running = (pod.get("status") or {}).get("phase") == "Running" and not is_being_deleted(pod)
    return is_running and (name != "cpu" or is_condition_true(pod, "Ready"))


def _stated(obj: Mapping[str, Any], name: str) -> str | None:
    return annotations_of(obj).get(PREFIX + name)


def _read(text: str, name: str) -> tuple[Decimal, bool]:
    """The amount of an annotation, and whether it is a percentage."""
    try:
        return parse_quantity(text.removesuffix("%")), text.endswith("%")
    except ValueError as error:
        raise ValueError(f"annotation {PREFIX}{name}: {error}") from error


def _request(pod: Object, name: str) -> Decimal:
    """What the pod requests."""
    total = Decimal()
    for container in pod["spec"]["containers"]:
        amount = ((container.get("resources") or {}).get("requests") or {}).get(name)
        if not amount:
            raise ValueError(f"missing request for {name} in container {container['name']} of Pod {name_of(pod)}")
        total += parse_quantity(amount)
    return total
