"""PodDisruptionBudgets (policy/v1): stored for whoever evicts; nothing on a laptop does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.kube.field_errors import invalid, not_supported
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.kinds.amounts import validate_int_or_percent
from trainer_devcluster.apiserver.kinds.selector_validation import validate_label_selector

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext

_NUMBERS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_EVICTION_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")


class PodDisruptionBudgetStrategy(StoreOnlyStrategy):
    """policy/v1 PodDisruptionBudget."""

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Start it with a status of zeros."""
        obj.setdefault("spec", {})
        obj["status"] = dict.fromkeys(_NUMBERS, 0)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check limits and selector."""
        spec = obj.get("spec") or {}
        causes: list[FieldError] = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            causes.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for name in ("minAvailable", "maxUnavailable"):
            causes += validate_int_or_percent(f"spec.{name}", spec.get(name))
        causes += validate_label_selector(spec.get("selector") or {}, "spec.selector")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in _EVICTION_POLICIES:
            causes.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES))
        return causes


POD_DISRUPTION_BUDGET = ResourceDefinition(
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    PodDisruptionBudgetStrategy(),
    singular="poddisruptionbudget",
    short_names=("pdb",),
    status_subresource=True,
)
