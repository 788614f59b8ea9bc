"""HorizontalPodAutoscalers: defaults and validation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainer.kube.field_errors import FieldError, forbidden, invalid, not_supported, required
from trainer.kube.objects import Object
from trainer.kube.quantity import Quantity
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import fill, object_reference, section, validate_quantity

_DEFAULT_UTILIZATION = 80
"""Percent of the requested CPU that is aimed at when nothing else is."""
_OF_PODS: Final = ("Pods", "Resource")
_OTHERS: Final = ("ContainerResource", "External", "Object")
_CHOICE: Final = "must set either a target raw value or a target utilization"


class HorizontalPodAutoscalerStrategy(Strategy):
    """autoscaling/v2 HorizontalPodAutoscaler."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in the lower limit and a metric."""
        spec = section(obj, "spec")
        fill(spec, minReplicas=1)
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": _DEFAULT_UTILIZATION}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Start it without a status."""
        obj["status"] = {}

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check limits, target and metrics."""
        spec = obj["spec"]
        causes = _validate_limits(spec)
        causes += object_reference("spec.scaleTargetRef", spec.get("scaleTargetRef"))
        for index, metric in enumerate(spec["metrics"]):
            causes += validate_metric(metric, f"spec.metrics[{index}]")
        if spec.get("behavior"):
            causes.append(forbidden("spec.behavior", "the dev cluster scales at the default pace: leave it out"))
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check the specification."""
        return [] if context.subresource == "status" else self.validate(obj, context)


def _validate_limits(spec: Object) -> list[FieldError]:
    least, most = spec["minReplicas"], spec.get("maxReplicas") or 0
    causes: list[FieldError] = []
    if least < 1:
        causes.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 1:
        causes.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
    if most < least:
        causes.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    return causes


HORIZONTAL_POD_AUTOSCALER = ResourceDefinition(
    HORIZONTAL_POD_AUTOSCALERS,
    HorizontalPodAutoscalerStrategy(),
    singular="horizontalpodautoscaler",
    short_names=("hpa",),
    categories=("all",),
    status_subresource=True,
    generation=False,
)


def validate_metric(metric: Object, path: str) -> Iterator[FieldError]:
    """What is wrong with one metric."""
    kind = metric.get("type") or ""
    field, source = kind.lower(), metric.get(kind.lower())
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
    elif kind in _OTHERS:
        yield forbidden(f"{path}.type", f"the dev cluster has no metrics of type {kind}: use Resource or Pods")
    elif kind not in _OF_PODS:
        yield not_supported(f"{path}.type", kind, sorted((*_OF_PODS, *_OTHERS)))
    elif source is None:
        yield required(f"{path}.{field}", "must populate information for the given metric source")
    elif kind == "Resource":
        if not source.get("name"):
            yield required(f"{path}.resource.name", "must specify a resource name")
        yield from _validate_target(source.get("target") or {}, f"{path}.resource.target")
    else:
        if not (source.get("metric") or {}).get("name"):
            yield required(f"{path}.pods.metric.name", "must specify a metric name")
        target = source.get("target") or {}
        if target.get("averageValue") is None:
            yield required(f"{path}.pods.target.averageValue", "must specify a positive target averageValue")
        yield from _validate_amount(target, f"{path}.pods.target")


def _validate_target(target: Object, path: str) -> Iterator[FieldError]:
    utilization, amount = target.get("averageUtilization"), target.get("averageValue")
    if utilization is None and amount is None:
        yield required(f"{path}.averageUtilization", _CHOICE)
    if utilization is not None and amount is not None:
        yield forbidden(f"{path}.averageValue", "may not set both a target raw value and a target utilization")
    if utilization is not None and utilization < 1:
        yield invalid(f"{path}.averageUtilization", utilization, "must be greater than 0")
    yield from _validate_amount(target, path)


def _validate_amount(target: Object, path: str) -> Iterator[FieldError]:
    amount = target.get("averageValue")
    if amount is not None and (problems := validate_quantity(f"{path}.averageValue", amount)):
        yield from problems
    elif amount is not None and not Quantity.parse(amount).amount:
        yield invalid(f"{path}.averageValue", amount, "must be positive")
