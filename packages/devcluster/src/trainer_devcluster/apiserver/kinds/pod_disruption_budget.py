"""PodDisruptionBudgets: whether an eviction leaves enough healthy pods.

Kubernetes has a controller that keeps what is allowed in the status of each budget; here it is counted when a pod is to
be evicted. Kubernetes documentation, "Specifying a Disruption Budget for your Application".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainer.kube.errors import ApiError
from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.objects import (
    Object,
    controller_of,
    is_being_deleted,
    is_condition_true,
    labels_of,
    mapping_at,
    name_of,
)
from trainer.kube.resource import Resource
from trainer.kube.selectors import LabelSelector
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_kube_testing.api_semantics import statuses


class PodDisruptionBudgetStrategy(Strategy):
    """Stores budgets that can be understood."""

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002 - the protocol's signature
        """Check the selector, and that only one way to count is used."""
        spec = mapping_at(obj, "spec")
        causes = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            shown = {"minAvailable": spec["minAvailable"], "maxUnavailable": spec["maxUnavailable"]}
            causes.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
        try:
            LabelSelector.from_object(spec.get("selector") or {})
        except ValueError as error:
            causes.append(invalid("spec.selector", spec["selector"], str(error)))
        return causes


POD_DISRUPTION_BUDGET = ResourceDefinition(
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    PodDisruptionBudgetStrategy(),
    singular="poddisruptionbudget",
    short_names=("pdb",),
    status_subresource=True,
)


def refuse_violation(pod: Object, budgets: Iterable[Object], pods: Iterable[Object]) -> None:
    """Refuse the eviction of a pod that its budget needs.

    Args:
        pod: that is to be evicted.
        budgets: of its namespace.
        pods: of its namespace, the one to be evicted among them.

    Raises:
        ApiError: 429, the budget has no room; 500, the pod has several budgets.
    """
    concerned = [budget for budget in budgets if _selects(budget, pod)]
    if not concerned:
        return
    if len(concerned) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise statuses.failure(500, "", message)
    (budget,) = concerned
    state = _BudgetState.of(budget, [each for each in pods if _selects(budget, each)])
    if not is_condition_true(pod, "Ready") and _lets_unhealthy_go(budget, state):
        return
    if state.allowed <= 0:
        raise _refusal(name_of(budget), state)


@dataclass(frozen=True, slots=True)
class _BudgetState:
    """What the status of a budget would say."""

    desired_healthy: int = 0
    current_healthy: int = 0
    allowed: int = 0
    """How many of its pods may go now."""
    problem: str = ""
    """Why it cannot be computed, so that no pod may go."""

    @classmethod
    def of(cls, budget: Object, pods: Sequence[Object]) -> _BudgetState:
        minimum = mapping_at(budget, "spec").get("minAvailable")
        if not isinstance(minimum, int):
            # Anything but a number is relative to the scale of what controls the pods, and Jobs have none.
            return cls(problem=_lack_of_scale(pods))
        healthy = sum(is_condition_true(pod, "Ready") and not is_being_deleted(pod) for pod in pods)
        return cls(minimum, healthy, healthy - minimum)


def _selects(budget: Object, pod: Object) -> bool:
    selector = mapping_at(budget, "spec").get("selector")
    return selector is not None and LabelSelector.from_object(selector).matches(labels_of(pod))


def _lack_of_scale(pods: Sequence[Object]) -> str:
    for pod in pods:
        owner = controller_of(pod)
        if owner is None:
            return f'found no controller ref for pod "{name_of(pod)}"'
        if owner["kind"] == "Job":
            return "jobs.batch does not implement the scale subresource"
    return "found no controllers of pods that have a scale"


def _lets_unhealthy_go(budget: Object, state: _BudgetState) -> bool:
    if mapping_at(budget, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return 0 < state.desired_healthy <= state.current_healthy


def _refusal(name: str, state: _BudgetState) -> ApiError:
    cause = (
        f"does not allow evicting pods currently because it failed sync: {state.problem}"
        if state.problem
        else f"needs {state.desired_healthy} healthy pods and has {state.current_healthy} currently"
    )
    causes = [{"reason": "DisruptionBudget", "message": f"The disruption budget {name} {cause}"}]
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return statuses.failure(429, "TooManyRequests", message, {"causes": causes})
