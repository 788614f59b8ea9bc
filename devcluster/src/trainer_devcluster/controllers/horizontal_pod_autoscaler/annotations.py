"""Where metrics come from: annotations of the autoscaler and of the pods that it scales."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from trainer.kube.objects import annotations_of, name_of
from trainer.kube.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PREFIX = "devcluster.trainer/metric-"
"""Begins the annotation; the name of the metric follows. What it says is a quantity: of a pod what that pod uses, of
the autoscaler what each pod uses, or, for metrics of type Object and External, what there is in all. For a target of
type Utilization a percentage such as `85%` is good as well, of whatever the pods request."""

_WHOLE = Decimal(100)


class MetricError(Exception):
    """There is no such metric, or nothing can be made of it."""


class Reading(NamedTuple):
    """What an annotation says."""

    amount: Decimal
    is_percentage: bool = False


def read_metric(obj: Mapping[str, Any], metric: str) -> Reading | None:
    """The metric that an object tells, None if it does not.

    Raises:
        MetricError: the annotation is neither a quantity nor a percentage.
    """
    text = annotations_of(obj).get(PREFIX + metric)
    if text is None:
        return None
    try:
        if text.endswith("%"):
            return Reading(Decimal(parse_quantity(text[:-1])), is_percentage=True)
        return Reading(parse_quantity(text))
    except ValueError as error:
        raise MetricError(f"annotation {PREFIX}{metric} of {name_of(obj)}: {error}") from error


def usage_of_request(reading: Reading, request: Decimal | None, missing: str) -> tuple[Decimal, Decimal]:
    """Used and requested amount, whose ratio is the utilization.

    Raises:
        MetricError: with `missing`, if the pod requests nothing that the amount could be compared with.
    """
    if reading.is_percentage:
        return reading.amount, _WHOLE
    if not request:
        raise MetricError(missing)
    return reading.amount, request
