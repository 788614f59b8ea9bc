"""Pods: what the API server and its admission plugins do to them, and the little of them that may change."""

from __future__ import annotations

from copy import deepcopy
from typing import Final

from trainer.kube.field_errors import FieldError, forbidden, invalid, required
from trainer.kube.objects import Object, annotations_of
from trainer.kube.resource import PODS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import all_containers, dicts, fill, section
from trainer_devcluster.apiserver.kinds.limit_range import admit_limits
from trainer_devcluster.apiserver.kinds.pods.pod_spec import default_pod_spec, drop_disabled
from trainer_devcluster.apiserver.kinds.pods.service_account import admit_service_account
from trainer_devcluster.apiserver.kinds.pods.spec_validation import validate_pod_spec
from trainer_devcluster.apiserver.kinds.priority_class import admit_priority
from trainer_devcluster.apiserver.kinds.resource_quota import check_quota

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


_JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
_JOBSET_PRIORITY = "jobset.sigs.k8s.io/priority"
_TOLERATED_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_SECONDS = 300
_COMPUTE = ("cpu", "memory")


class PodStrategy(Strategy):
    """Defaults, the admission plugins that matter to scheduling, and JobSet's pod webhook."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in the specification, and the times that Go writes as null when nobody has set them."""
        for condition in dicts((obj.get("status") or {}).get("conditions")):
            condition.setdefault("lastProbeTime", None)
            condition.setdefault("lastTransitionTime", None)
        spec = section(obj, "spec")
        default_pod_spec(spec)
        fill(spec, enableServiceLinks=True)
        for container in all_containers(spec):
            _default_requests(container)

    def admit(self, obj: Object, context: WriteContext) -> None:
        """Do what LimitRanger, ServiceAccount, Priority and DefaultTolerationSeconds do.

        Raises:
            ApiError: 403, one of them refuses the pod.
        """
        admit_limits(obj, context)
        admit_service_account(obj, context)
        admit_priority(obj, context)
        _tolerate_node_outages(section(obj, "spec"))

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Set the first status."""
        spec = section(obj, "spec")
        drop_disabled(spec, context.gates)
        _label_jobset_priority(obj)
        obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [_gated(context.now)]

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """Check the specification, and that the namespace has room for it.

        Raises:
            ApiError: 403, a quota would be exceeded.
        """
        causes = validate_pod_spec(obj["spec"], "spec")
        if not causes:
            check_quota(obj, context)
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check that only what may change has changed, and the outcome."""
        if context.subresource is not None:
            return []
        return validate_pod_change(obj["spec"], old["spec"]) or validate_pod_spec(obj["spec"], "spec")


def quality_of_service(spec: Object) -> str:
    """The class by which the kubelet evicts (Kubernetes documentation, "Pod Quality of Service Classes")."""
    resources = [container.get("resources") or {} for container in all_containers(spec)]
    amounts = [amount for entry in resources for amount in (entry.get("limits"), entry.get("requests")) if amount]
    if not any(amount.get(name) for amount in amounts for name in _COMPUTE):
        return "BestEffort"
    for entry in resources:
        limits, requests = entry.get("limits") or {}, entry.get("requests") or {}
        if any(not limits.get(name) or requests.get(name, limits[name]) != limits[name] for name in _COMPUTE):
            return "Burstable"
    return "Guaranteed"


def _default_requests(container: Object) -> None:
    limits = (container.get("resources") or {}).get("limits")
    if isinstance(limits, dict) and limits:
        fill(section(container["resources"], "requests"), **limits)


def _tolerate_node_outages(spec: Object) -> None:
    """Add the tolerations of the admission plugin DefaultTolerationSeconds."""
    tolerations = dicts(spec.get("tolerations"))
    for taint in _TOLERATED_TAINTS:
        if not any(
            entry.get("key") in (taint, None) and entry.get("effect") in ("NoExecute", None) for entry in tolerations
        ):
            tolerations.append(
                {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
            )
    spec["tolerations"] = tolerations


def _label_jobset_priority(obj: Object) -> None:
    """Add the label that the pod webhook of JobSet adds to the pods of its Jobs."""
    if _JOBSET_NAME in annotations_of(obj):
        section(obj["metadata"], "labels")[_JOBSET_PRIORITY] = str(obj["spec"]["priority"])


def _gated(now: str) -> Object:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


POD = ResourceDefinition(
    PODS,
    PodStrategy(),
    singular="pod",
    short_names=("po",),
    categories=("all",),
    status_subresource=True,
    subresources=("log", "exec", "binding", "eviction"),
)
