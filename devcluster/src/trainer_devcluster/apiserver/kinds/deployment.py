"""Deployments and ReplicaSets (apps/v1): stored with the defaults and the validation of the real server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.kube.field_errors import forbidden, invalid, not_supported, required
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition, ScalePaths
from trainer_devcluster.apiserver.kinds.amounts import validate_int_or_percent
from trainer_devcluster.apiserver.kinds.causes import not_negative, unchanged
from trainer_devcluster.apiserver.kinds.editing import fill, section
from trainer_devcluster.apiserver.kinds.workload import WorkloadStrategy, validate_selected_template

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext

_STRATEGIES: Final = ("Recreate", "RollingUpdate")
_COUNTS: Final = ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
REPLICA_PATHS: Final = ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector")


class DeploymentStrategy(WorkloadStrategy):
    """apps/v1 Deployment."""

    kind = "Deployment"

    def default(self, obj: Object, context: WriteContext) -> None:
        """Fill in the specification."""
        super().default(obj, context)
        spec = obj["spec"]
        fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
        strategy = section(spec, "strategy")
        fill(strategy, type="RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            fill(section(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Start it without a status."""
        super().prepare_for_create(obj, context)
        obj["status"] = {}

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002 - the protocol's
        """Check counts, selector, template and strategy."""
        spec = obj["spec"]
        causes = not_negative("spec.replicas", spec.get("replicas"))
        causes += validate_selected_template(
            spec, "ReplicaSet", empty_selector="deployment", selector_detail="invalid label selector"
        )
        causes += _validate_strategy(spec["strategy"])
        causes += [cause for name in _COUNTS[1:] for cause in not_negative(f"spec.{name}", spec.get(name))]
        deadline, ready = spec["progressDeadlineSeconds"], spec.get("minReadySeconds") or 0
        if deadline <= ready:
            detail = "must be greater than minReadySeconds"
            causes.append(invalid("spec.progressDeadlineSeconds", deadline, detail))
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check it, and that it selects the same pods as before."""
        if context.subresource == "status":
            return []
        return self.validate(obj, context) + same_selector(obj, old)


class ReplicaSetStrategy(WorkloadStrategy):
    """apps/v1 ReplicaSet."""

    kind = "ReplicaSet"

    def default(self, obj: Object, context: WriteContext) -> None:
        """Fill in the specification."""
        super().default(obj, context)
        fill(obj["spec"], replicas=1)

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Start it without replicas."""
        super().prepare_for_create(obj, context)
        obj["status"] = {"replicas": 0}

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check counts, selector and template."""
        spec = obj["spec"]
        causes = [cause for name in _COUNTS[:2] for cause in not_negative(f"spec.{name}", spec.get(name))]
        return causes + validate_selected_template(
            spec, "ReplicaSet", empty_selector="deployment", selector_detail="invalid label selector"
        )

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check it, and that it selects the same pods as before."""
        if context.subresource == "status":
            return []
        return self.validate(obj, context) + same_selector(obj, old)


def same_selector(obj: Object, old: Object) -> list[FieldError]:
    """What is said when a workload would select other pods than before."""
    return unchanged("spec.selector", obj["spec"].get("selector"), old["spec"].get("selector"))


def _validate_strategy(strategy: Object) -> list[FieldError]:
    rolling, path = strategy.get("rollingUpdate"), "spec.strategy.rollingUpdate"
    if strategy["type"] == "Recreate":
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [forbidden(path, detail)] if rolling is not None else []
    if strategy["type"] != "RollingUpdate":
        return [not_supported("spec.strategy.type", strategy["type"], _STRATEGIES)]
    if rolling is None:
        return [required(path, "this should be defaulted and never be nil")]
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    causes = validate_int_or_percent(f"{path}.maxUnavailable", unavailable)
    if not isinstance(surge, str) or causes or not surge.endswith("%"):
        causes += validate_int_or_percent(f"{path}.maxSurge", surge)
    if _is_zero(unavailable) and _is_zero(surge):
        causes.append(invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return causes


def _is_zero(value: object) -> bool:
    return value in (0, "0%")


def _definition(plural: str, strategy: WorkloadStrategy, short_name: str) -> ResourceDefinition:
    return ResourceDefinition(
        Resource("apps", "v1", plural, strategy.kind),
        strategy,
        singular=strategy.kind.lower(),
        short_names=(short_name,),
        categories=("all",),
        status_subresource=True,
        scale=REPLICA_PATHS,
    )


DEPLOYMENT = _definition("deployments", DeploymentStrategy(), "deploy")
REPLICA_SET = _definition("replicasets", ReplicaSetStrategy(), "rs")
