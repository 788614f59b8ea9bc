"""PriorityClasses (scheduling.k8s.io/v1), and what the Priority admission plugin does to new pods."""

from __future__ import annotations

from typing import Final

from trainer.kube.field_errors import FieldError, forbidden
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.resource import PODS, Resource
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import fill, refused
from trainer_devcluster.apiserver.wire import answers

PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Classes that every cluster has, with their values."""
_DESCRIPTIONS: Final = {
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
    ),
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
}
_DEFAULT_POLICY: Final = "PreemptLowerPriority"


class PriorityClassStrategy(Strategy):
    """scheduling.k8s.io/v1 PriorityClass."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in value and policy."""
        fill(obj, value=0, preemptionPolicy=_DEFAULT_POLICY)

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Refuse a second class for pods that name none.

        Raises:
            ApiError: 403, there is one.
        """
        self._check_default(obj, context)

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Refuse a second class for pods that name none.

        Raises:
            ApiError: 403, there is one.
        """
        self._check_default(obj, context)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check that the value, which pods have copied, stays."""
        return [forbidden("value", "may not be changed in an update.")] if obj["value"] != old["value"] else []

    def _check_default(self, obj: Object, context: WriteContext) -> None:
        if not obj.get("globalDefault"):
            return
        for other in context.listed(PRIORITY_CLASSES):
            if other.get("globalDefault") and name_of(other) != name_of(obj):
                message = f"PriorityClass {name_of(other)} is already marked as default. Only one default can exist"
                raise answers.forbidden(PRIORITY_CLASSES, name_of(obj), message)


def system_classes() -> list[Object]:
    """The classes that every cluster has from its start."""
    return [
        {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]}
        for name, value in SYSTEM_CLASSES.items()
    ]


def admit_priority(obj: Object, context: WriteContext, resource: Resource = PODS) -> None:
    """Give a new pod or PodGroup the priority of its class, in place; idempotent.

    Raises:
        ApiError: 403, there is no such class, or another priority is asked for.
    """
    spec = obj["spec"]
    name, priority, policy = _class_of(obj, context, resource)
    if name:
        spec["priorityClassName"] = name
    for noun, field, computed in (
        ("integer value of priority", "priority", priority),
        ("string value of PreemptionPolicy", "preemptionPolicy", policy),
    ):
        given = spec.get(field)
        if given is not None and given != computed:
            what = "pod" if resource == PODS else resource.kind
            message = (
                f"the {noun} ({given}) must not be provided in {what} spec; "
                f"priority admission controller computed {computed} from the given PriorityClass name"
            )
            raise refused(obj, message, resource)
    spec["priority"], spec["preemptionPolicy"] = priority, policy


def _class_of(obj: Object, context: WriteContext, resource: Resource) -> tuple[str, int, str]:
    """Name, value and policy of the class of a pod or PodGroup."""
    name = obj["spec"].get("priorityClassName")
    if not name:
        defaults = [entry for entry in context.listed(PRIORITY_CLASSES) if entry.get("globalDefault")]
        if not defaults:
            return "", 0, _DEFAULT_POLICY
        lowest = min(defaults, key=lambda entry: int(entry["value"]))
        return name_of(lowest), lowest["value"], lowest.get("preemptionPolicy") or _DEFAULT_POLICY
    found = context.stored(PRIORITY_CLASSES, ObjectKey("", name))
    if found is not None:
        return name, found["value"], found.get("preemptionPolicy") or _DEFAULT_POLICY
    if name in SYSTEM_CLASSES:
        return name, SYSTEM_CLASSES[name], _DEFAULT_POLICY
    raise refused(obj, f"no PriorityClass with name {name} was found", resource)


PRIORITY_CLASS = ResourceDefinition(
    PRIORITY_CLASSES, PriorityClassStrategy(), singular="priorityclass", short_names=("pc",)
)
