"""HorizontalPodAutoscalers: defaults and validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.field_errors import forbidden, invalid
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.kinds.causes import object_reference
from trainer_devcluster.apiserver.kinds.editing import fill, section
from trainer_devcluster.apiserver.kinds.metric_validation import validate_metric

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext

_DEFAULT_UTILIZATION = 80
"""Percent of the requested CPU that is aimed at when nothing else is."""


class HorizontalPodAutoscalerStrategy(StoreOnlyStrategy):
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
