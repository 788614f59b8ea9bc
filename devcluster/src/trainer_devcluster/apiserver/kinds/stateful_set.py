"""StatefulSets and DaemonSets (apps/v1): stored with the defaults and the validation of the real server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.kube.field_errors import forbidden, invalid, required
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.kinds.amounts import validate_int_or_percent
from trainer_devcluster.apiserver.kinds.causes import not_negative
from trainer_devcluster.apiserver.kinds.deployment import REPLICA_PATHS, same_selector
from trainer_devcluster.apiserver.kinds.editing import fill, section
from trainer_devcluster.apiserver.kinds.pods.pod_spec import dicts
from trainer_devcluster.apiserver.kinds.workload import WorkloadStrategy, validate_selected_template

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext

_MANAGEMENT_POLICIES: Final = ("OrderedReady", "Parallel")
_MUTABLE: Final = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_MUTABLE_TEXT: Final = ", ".join(f"'{name}'" for name in _MUTABLE[:-1]) + f" and '{_MUTABLE[-1]}'"
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_NUMBERS: Final = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


class StatefulSetStrategy(WorkloadStrategy):
    """apps/v1 StatefulSet."""

    kind = "StatefulSet"

    def default(self, obj: Object, context: WriteContext) -> None:
        """Fill in the specification."""
        super().default(obj, context)
        spec = obj["spec"]
        fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
        strategy = section(spec, "updateStrategy")
        fill(strategy, type="RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            fill(section(strategy, "rollingUpdate"), partition=0)
        fill(section(spec, "persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain")
        for claim in dicts(spec.get("volumeClaimTemplates")):
            fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
            section(claim, "metadata")
            fill(section(claim, "spec"), volumeMode="Filesystem")
            fill(section(claim, "status"), phase="Pending")

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Start it without replicas."""
        super().prepare_for_create(obj, context)
        obj["status"] = {"replicas": 0, "availableReplicas": 0}

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002 - the protocol's
        """Check policies, counts, selector and template."""
        spec = obj["spec"]
        policy = spec["podManagementPolicy"]
        causes: list[FieldError] = []
        if policy not in _MANAGEMENT_POLICIES:
            causes.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
        causes += _validate_update_strategy(spec["updateStrategy"])
        for name in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
            causes += not_negative(f"spec.{name}", spec.get(name))
        causes += not_negative("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
        return causes + validate_selected_template(spec, "StatefulSet")

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check it, and that only what may change has changed."""
        if context.subresource == "status":
            return []
        causes = self.validate(obj, context)
        if _fixed(obj) != _fixed(old):
            detail = f"updates to statefulset spec for fields other than {_MUTABLE_TEXT} are forbidden"
            causes.append(forbidden("spec", detail))
        return causes


class DaemonSetStrategy(WorkloadStrategy):
    """apps/v1 DaemonSet."""

    kind = "DaemonSet"

    def default(self, obj: Object, context: WriteContext) -> None:
        """Fill in the specification."""
        super().default(obj, context)
        spec = obj["spec"]
        fill(spec, revisionHistoryLimit=10)
        strategy = section(spec, "updateStrategy")
        fill(strategy, type="RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            fill(section(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Start it with a status of zeros and the first number of its template."""
        super().prepare_for_create(obj, context)
        section(obj["metadata"], "annotations")[_TEMPLATE_GENERATION] = "1"
        obj["status"] = dict.fromkeys(_NUMBERS, 0)

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Count the versions of the template."""
        before = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "1")
        changed = obj["spec"]["template"] != old["spec"]["template"]
        number = int(before) + 1 if changed and before.isdigit() else before
        section(obj["metadata"], "annotations")[_TEMPLATE_GENERATION] = str(number)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check selector, template and update strategy."""
        spec = obj["spec"]
        causes = validate_selected_template(spec, "DaemonSet")
        for name in ("minReadySeconds", "revisionHistoryLimit"):
            causes += not_negative(f"spec.{name}", spec.get(name))
        strategy = spec["updateStrategy"]
        if strategy["type"] not in ("OnDelete", "RollingUpdate"):
            causes.append(_unknown_strategy(strategy))
        rolling, path = strategy.get("rollingUpdate") or {}, "spec.updateStrategy.rollingUpdate"
        for name in ("maxUnavailable", "maxSurge"):
            causes += validate_int_or_percent(f"{path}.{name}", rolling.get(name))
        if rolling and all(rolling.get(name) in (0, "0%") for name in ("maxUnavailable", "maxSurge")):
            causes.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check it, and that it selects the same pods as before."""
        if context.subresource == "status":
            return []
        return self.validate(obj, context) + same_selector(obj, old)


def _validate_update_strategy(strategy: Object) -> list[FieldError]:
    rolling, path = strategy.get("rollingUpdate"), "spec.updateStrategy.rollingUpdate"
    if strategy["type"] == "OnDelete":
        detail = "only allowed for updateStrategy 'RollingUpdate'"
        return [invalid(path, rolling, detail)] if rolling is not None else []
    if strategy["type"] != "RollingUpdate":
        return [_unknown_strategy(strategy)]
    return not_negative(f"{path}.partition", (rolling or {}).get("partition"))


def _unknown_strategy(strategy: Object) -> FieldError:
    return invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'")


def _fixed(obj: Object) -> Object:
    return {name: value for name, value in obj["spec"].items() if name not in _MUTABLE}


STATEFUL_SET = ResourceDefinition(
    Resource("apps", "v1", "statefulsets", "StatefulSet"),
    StatefulSetStrategy(),
    singular="statefulset",
    short_names=("sts",),
    categories=("all",),
    status_subresource=True,
    scale=REPLICA_PATHS,
)
DAEMON_SET = ResourceDefinition(
    Resource("apps", "v1", "daemonsets", "DaemonSet"),
    DaemonSetStrategy(),
    singular="daemonset",
    short_names=("ds",),
    categories=("all",),
    status_subresource=True,
)
