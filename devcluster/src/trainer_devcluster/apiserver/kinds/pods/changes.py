"""What may change in a pod once it exists: little, since a process that runs cannot be changed by an update."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Final

from trainer.kube.field_errors import forbidden, invalid, required
from trainer_devcluster.apiserver.kinds.pods.pod_spec import all_containers, dicts

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_CONTAINER_LISTS: Final = ("containers", "initContainers")
_MUTABLE: Final = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_IMMUTABLE_TEXT: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def validate_pod_change(new: Object, old: Object) -> list[FieldError]:
    """What is wrong with a change of a pod's specification; both are defaulted."""
    causes = _validate_container_count(new, old)
    if causes:
        return causes
    for field in _CONTAINER_LISTS:
        for index, container in enumerate(dicts(new.get(field))):
            if not container.get("image"):
                causes.append(required(f"spec.{field}[{index}].image"))
    causes += _validate_deadline(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    causes += _validate_gates(new, old)
    causes += _validate_tolerations(new, old)
    if not causes and _fixed(new, is_gated=_is_gated(old)) != _fixed(old, is_gated=_is_gated(old)):
        causes.append(forbidden("spec", _IMMUTABLE_TEXT))
    return causes


def _validate_container_count(new: Object, old: Object) -> list[FieldError]:
    return [
        forbidden(f"spec.{field}", "pod updates may not add or remove containers")
        for field in _CONTAINER_LISTS
        if len(dicts(new.get(field))) != len(dicts(old.get(field)))
    ]


def _validate_deadline(new: int | None, old: int | None) -> list[FieldError]:
    path = "spec.activeDeadlineSeconds"
    if old is None or new == old:
        return []
    if new is None:
        return [invalid(path, None, "must not update from a positive integer to nil value")]
    return [] if new < old else [invalid(path, new, "must be less than or equal to previous value")]


def _validate_gates(new: Object, old: Object) -> list[FieldError]:
    former = {gate.get("name") for gate in dicts(old.get("schedulingGates"))}
    added = [gate.get("name") for gate in dicts(new.get("schedulingGates")) if gate.get("name") not in former]
    return [
        forbidden("spec.schedulingGates", f"only deletion is allowed, but found new scheduling gate '{name}'")
        for name in added
    ]


def _validate_tolerations(new: Object, old: Object) -> list[FieldError]:
    kept = [_lasting(toleration) for toleration in dicts(new.get("tolerations"))]
    if all(_lasting(toleration) in kept for toleration in dicts(old.get("tolerations"))):
        return []
    return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _lasting(toleration: Object) -> Object:
    return {field: value for field, value in toleration.items() if field != "tolerationSeconds"}


def _is_gated(spec: Object) -> bool:
    return bool(spec.get("schedulingGates"))


def _fixed(spec: Object, *, is_gated: bool) -> Object:
    """The part that may not change; where a gated pod may run can still be narrowed (Kubernetes, "Pod Scheduling")."""
    fixed: Object = deepcopy(spec)
    for field in (*_MUTABLE, *(("nodeSelector", "affinity") if is_gated else ())):
        fixed.pop(field, None)
    for container in all_containers(fixed):
        container.pop("image", None)
    return fixed
