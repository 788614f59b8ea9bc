"""Validation of pod specifications, in Pods and in the templates of Jobs and others alike."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from trainer.kube.field_errors import duplicate, invalid, not_supported, required
from trainer_devcluster.apiserver.kinds.causes import not_negative
from trainer_devcluster.apiserver.kinds.pods.container_validation import validate_containers
from trainer_devcluster.apiserver.kinds.pods.lists import objects_in, validate_label_name
from trainer_devcluster.apiserver.kinds.pods.volume_validation import validate_volumes
from trainer_devcluster.apiserver.objects.names import label_value_problems, qualified_name_problems, subdomain_problems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS: Final = ("Equal", "Exists")
_MAX_SECONDS: Final = 2147483647
_KEYLESS: Final = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'


def validate_pod_spec(
    spec: Object, path: str, *, restart_policies: Sequence[str] = _RESTART_POLICIES
) -> list[FieldError]:
    """What is wrong with a defaulted pod specification at `path`.

    Args:
        spec: the specification.
        path: of the specification in the object, such as `spec.template.spec`.
        restart_policies: those that the kind allows, in the order in which a refusal names them.
    """
    causes: list[FieldError] = []
    volumes = validate_volumes(spec.get("volumes"), f"{path}.volumes", causes)
    causes += validate_containers(spec, path, volumes)
    if spec.get("restartPolicy") not in restart_policies:
        causes.append(not_supported(f"{path}.restartPolicy", spec.get("restartPolicy"), restart_policies))
    if spec.get("dnsPolicy") not in _DNS_POLICIES:
        causes.append(not_supported(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES))
    causes += _validate_node_selector(spec.get("nodeSelector"), f"{path}.nodeSelector")
    for field in ("serviceAccountName", "nodeName", "priorityClassName"):
        if name := spec.get(field):
            causes += [invalid(f"{path}.{field}", name, problem) for problem in subdomain_problems(str(name))]
    causes += not_negative(f"{path}.terminationGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"))
    causes += _validate_deadline(spec.get("activeDeadlineSeconds"), f"{path}.activeDeadlineSeconds")
    for field in ("hostname", "subdomain"):
        causes += validate_label_name(spec.get(field), f"{path}.{field}")
    causes += _validate_tolerations(spec.get("tolerations"), f"{path}.tolerations")
    causes += _validate_host_aliases(spec.get("hostAliases"), f"{path}.hostAliases")
    return causes + _validate_gates(spec.get("schedulingGates"), f"{path}.schedulingGates")


def _validate_node_selector(selector: Any, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    for key, value in (selector or {}).items() if isinstance(selector or {}, dict) else ():
        causes += [invalid(path, key, problem) for problem in qualified_name_problems(key)]
        causes += [invalid(path, value, problem) for problem in label_value_problems(str(value))]
    return causes


def _validate_deadline(seconds: Any, path: str) -> list[FieldError]:
    if seconds is None or 1 <= seconds <= _MAX_SECONDS:
        return []
    return [invalid(path, seconds, f"must be between 1 and {_MAX_SECONDS}, inclusive")]


def _validate_tolerations(tolerations: Any, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    for place, toleration in objects_in(tolerations, path, causes):
        key, operator = toleration.get("key"), toleration.get("operator") or "Equal"
        value, effect = toleration.get("value"), toleration.get("effect")
        if key:
            causes += [invalid(f"{place}.key", key, problem) for problem in qualified_name_problems(key)]
        elif operator != "Exists":
            causes.append(invalid(f"{place}.operator", operator, _KEYLESS))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            causes.append(invalid(f"{place}.effect", effect or "", detail))
        if operator not in _TOLERATION_OPERATORS:
            causes.append(not_supported(f"{place}.operator", operator, _TOLERATION_OPERATORS))
        elif operator == "Exists" and value:
            causes.append(invalid(f"{place}.operator", value, "value must be empty when `operator` is 'Exists'"))
        elif operator == "Equal":
            causes += [invalid(f"{place}.operator", value, problem) for problem in label_value_problems(value or "")]
        if effect and effect not in _TAINT_EFFECTS:
            causes.append(not_supported(f"{place}.effect", effect, _TAINT_EFFECTS))
    return causes


def _validate_host_aliases(aliases: Any, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    for place, alias in objects_in(aliases, path, causes):
        try:
            ipaddress.ip_address(alias.get("ip") or "")
        except ValueError:
            detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            causes.append(invalid(f"{place}.ip", alias.get("ip") or "", detail))
        for name in alias.get("hostnames") or []:
            causes += [invalid(f"{place}.hostnames", name, problem) for problem in subdomain_problems(name)]
    return causes


def _validate_gates(gates: Any, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    names: set[str] = set()
    for place, gate in objects_in(gates, path, causes):
        name = gate.get("name") or ""
        if not name:
            causes.append(required(f"{place}.name"))
            continue
        causes += [invalid(place, name, problem) for problem in qualified_name_problems(name)]
        if name in names:
            causes.append(duplicate(place, name))
        names.add(name)
    return causes
