"""Validation of pod specifications, in Pods and in the templates of Jobs alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.devcluster.apiserver.definitions import NameRule
from trainer.devcluster.apiserver.kinds.causes import not_negative
from trainer.devcluster.apiserver.kinds.pod_spec import PROBES, dicts
from trainer.devcluster.apiserver.kinds.probe_validation import validate_probe
from trainer.devcluster.apiserver.names import name_problems
from trainer.kube.field_errors import duplicate, invalid, not_found, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Collection

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")


def validate_pod_spec(
    spec: Object, path: str, *, restart_policies: Collection[str] = _RESTART_POLICIES
) -> list[FieldError]:
    """What is wrong with a defaulted pod specification at `path`.

    Args:
        spec: the specification.
        path: of the specification in the object, such as `spec.template.spec`.
        restart_policies: those that the kind allows.
    """
    causes: list[FieldError] = []
    volumes = _named(spec.get("volumes"), f"{path}.volumes", causes)
    if not spec.get("containers"):
        causes.append(required(f"{path}.containers"))
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(_objects(spec.get(field), f"{path}.{field}", causes)):
            causes += _validate_container(container, f"{path}.{field}[{index}]", volumes, names)
    if spec.get("restartPolicy") not in restart_policies:
        causes.append(not_supported(f"{path}.restartPolicy", spec.get("restartPolicy"), sorted(restart_policies)))
    if spec.get("dnsPolicy") not in _DNS_POLICIES:
        causes.append(not_supported(f"{path}.dnsPolicy", spec.get("dnsPolicy"), sorted(_DNS_POLICIES)))
    for field in ("hostname", "subdomain"):
        causes += _name_causes(f"{path}.{field}", spec.get(field))
    causes += not_negative(f"{path}.terminationGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"))
    return causes


def _validate_container(container: Object, path: str, volumes: set[str], names: set[str]) -> list[FieldError]:
    causes: list[FieldError] = []
    name = container.get("name")
    if not name:
        causes.append(required(f"{path}.name"))
    elif name in names:
        causes.append(duplicate(f"{path}.name", name))
    else:
        names.add(name)
        causes += _name_causes(f"{path}.name", name)
    if not container.get("image"):
        causes.append(required(f"{path}.image"))
    pull_policy = container.get("imagePullPolicy")
    if pull_policy not in _PULL_POLICIES:
        causes.append(not_supported(f"{path}.imagePullPolicy", pull_policy, sorted(_PULL_POLICIES)))
    for field in ("command", "args"):
        causes += _strings(container.get(field), f"{path}.{field}")
    causes += _validate_env(container, f"{path}.env")
    causes += _validate_mounts(container, f"{path}.volumeMounts", volumes)
    for field in PROBES:
        if container.get(field) is not None:
            causes += validate_probe(container[field], f"{path}.{field}")
    return causes


def _validate_env(container: Object, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    for index, variable in enumerate(_objects(container.get("env"), path, causes)):
        if not variable.get("name"):
            causes.append(required(f"{path}[{index}].name"))
        if variable.get("value") and variable.get("valueFrom"):
            detail = "may not be specified when `value` is not empty"
            causes.append(invalid(f"{path}[{index}].valueFrom", "", detail))
        if not isinstance(variable.get("value") or "", str):
            causes.append(invalid(f"{path}[{index}].value", variable["value"], "must be a string: quote the value"))
    return causes


def _validate_mounts(container: Object, path: str, volumes: set[str]) -> list[FieldError]:
    causes: list[FieldError] = []
    mounted: set[str] = set()
    for index, mount in enumerate(_objects(container.get("volumeMounts"), path, causes)):
        name, mount_path = mount.get("name"), mount.get("mountPath")
        if not name:
            causes.append(required(f"{path}[{index}].name"))
        elif name not in volumes:
            causes.append(not_found(f"{path}[{index}].name", name))
        if not mount_path:
            causes.append(required(f"{path}[{index}].mountPath"))
        elif mount_path in mounted:
            causes.append(invalid(f"{path}[{index}].mountPath", mount_path, "must be unique"))
        else:
            mounted.add(mount_path)
    return causes


def _named(entries: Any, path: str, causes: list[FieldError]) -> set[str]:
    names: set[str] = set()
    for index, entry in enumerate(_objects(entries, path, causes)):
        name = entry.get("name")
        if not name:
            causes.append(required(f"{path}[{index}].name"))
        elif name in names:
            causes.append(duplicate(f"{path}[{index}].name", name))
        else:
            names.add(name)
            causes += _name_causes(f"{path}[{index}].name", name)
    return names


def _objects(entries: Any, path: str, causes: list[FieldError]) -> list[Object]:
    objects = dicts(entries)
    if entries is not None and (not isinstance(entries, list) or len(objects) != len(entries)):
        causes.append(invalid(path, entries, "must be a list of objects"))
    return objects


def _strings(entries: Any, path: str) -> list[FieldError]:
    if entries is None or (isinstance(entries, list) and all(isinstance(entry, str) for entry in entries)):
        return []
    return [invalid(path, entries, "must be a list of strings: quote the values")]


def _name_causes(path: str, name: Any) -> list[FieldError]:
    if not name:
        return []
    if not isinstance(name, str):
        return [invalid(path, name, "must be a string")]
    return [invalid(path, name, problem) for problem in name_problems(name, NameRule.LABEL)]
