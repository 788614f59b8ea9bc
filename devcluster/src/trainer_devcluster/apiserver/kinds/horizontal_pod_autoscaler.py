"""HorizontalPodAutoscalers: defaults and validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.kube.field_errors import invalid, not_supported, required
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.kinds.causes import not_negative, object_reference
from trainer_devcluster.apiserver.kinds.editing import fill, section
from trainer_devcluster.apiserver.kinds.metric_validation import validate_metric

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext

DEFAULT_UTILIZATION = 80
"""Percent of the requested CPU that is aimed at when nothing else is."""
_PERIOD_SECONDS = 15
_MAX_PERIOD_SECONDS = 1800
_MAX_WINDOW_SECONDS = 3600
_SELECT_POLICIES = ("Disabled", "Max", "Min")
_POLICY_TYPES = ("Percent", "Pods")


def fill_defaults(obj: Object) -> None:
    """Fill in the lower limit, a metric, and how fast it scales if anything is said about that, in place."""
    spec = section(obj, "spec")
    fill(spec, minReplicas=1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": DEFAULT_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if isinstance(spec.get("behavior"), dict):
        percent = {"type": "Percent", "value": 100, "periodSeconds": _PERIOD_SECONDS}
        pods = {"type": "Pods", "value": 4, "periodSeconds": _PERIOD_SECONDS}
        up, down = section(spec["behavior"], "scaleUp"), section(spec["behavior"], "scaleDown")
        fill(up, stabilizationWindowSeconds=0, selectPolicy="Max", policies=[pods, percent])
        fill(down, selectPolicy="Max", policies=[percent])


class HorizontalPodAutoscalerStrategy(StoreOnlyStrategy):
    """autoscaling/v2 HorizontalPodAutoscaler."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in the lower limit, a metric, and how fast it scales if anything is said about that."""
        fill_defaults(obj)

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Start it without a status."""
        obj["status"] = {}

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check limits, target, metrics and behavior."""
        spec = obj["spec"]
        causes = _validate_limits(spec)
        causes += object_reference("spec.scaleTargetRef", spec.get("scaleTargetRef"))
        for index, metric in enumerate(spec["metrics"]):
            causes += validate_metric(metric, f"spec.metrics[{index}]")
        for direction, rules in (spec.get("behavior") or {}).items():
            causes += _validate_rules(rules, f"spec.behavior.{direction}")
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check the specification; on `/status` the numbers of replicas."""
        if context.subresource != "status":
            return self.validate(obj, context)
        status = obj.get("status") or {}
        return [
            cause
            for field in ("currentReplicas", "desiredReplicas")
            for cause in not_negative(f"status.{field}", status.get(field))
        ]


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


def _validate_rules(rules: Object, path: str) -> list[FieldError]:
    window, selected = rules.get("stabilizationWindowSeconds"), rules["selectPolicy"]
    causes: list[FieldError] = []
    if window is not None and window < 0:
        causes.append(invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero"))
    if window is not None and window > _MAX_WINDOW_SECONDS:
        detail = f"must be less than or equal to {_MAX_WINDOW_SECONDS}"
        causes.append(invalid(f"{path}.stabilizationWindowSeconds", window, detail))
    if selected not in _SELECT_POLICIES:
        causes.append(not_supported(f"{path}.selectPolicy", selected, _SELECT_POLICIES))
    if not rules["policies"]:
        causes.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(rules["policies"]):
        causes += _validate_policy(policy, f"{path}.policies[{index}]")
    return causes


def _validate_policy(policy: Object, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    if policy.get("type") not in _POLICY_TYPES:
        causes.append(not_supported(f"{path}.type", policy.get("type") or "", _POLICY_TYPES))
    for field in ("value", "periodSeconds"):
        value: Any = policy.get(field) or 0
        if value <= 0:
            causes.append(invalid(f"{path}.{field}", value, "must be greater than zero"))
        if field == "periodSeconds" and value > _MAX_PERIOD_SECONDS:
            causes.append(invalid(f"{path}.{field}", value, f"must be less than or equal to {_MAX_PERIOD_SECONDS}"))
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
