"""Validation of pod specifications, in Pods and in the templates of Jobs alike.

It finds what the kubelet could not run, and what people get wrong; a real cluster refuses more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from trainer.kube.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from trainer.kube.names import qualified_name_problems
from trainer.kube.objects import Object
from trainer.kube.quantity import Quantity
from trainer_devcluster.apiserver.kinds.fields import dicts, not_negative, validate_quantity
from trainer_devcluster.apiserver.kinds.pods.pod_spec import PROBES
from trainer_devcluster.apiserver.kinds.pods.volume_validation import validate_mounts, validate_volumes
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_TOLERATION_OPERATORS: Final = ("Equal", "Exists")
_MAX_SECONDS: Final = 2147483647
_KEYLESS: Final = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MAX_PORT: Final = 65535
_NOT_IN_INIT: Final = "may not be set for init containers without restartPolicy=Always"
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_PROBE_NUMBERS: Final = (
    "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold",
)  # fmt: skip
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)
_VARIABLE_TEXT: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
_FRACTIONAL: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Resources of containers that need no domain in their name."""


def validate_pod_spec(spec: Object, path: str) -> list[FieldError]:
    """What is wrong with a defaulted pod specification at `path`, such as `spec.template.spec`."""
    causes: list[FieldError] = []
    volumes = validate_volumes(spec.get("volumes"), f"{path}.volumes", causes)
    causes += _validate_containers(spec, path, volumes)
    if spec.get("restartPolicy") not in _RESTART_POLICIES:
        causes.append(not_supported(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES))
    causes += not_negative(f"{path}.terminationGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_SECONDS:
        detail = f"must be between 1 and {_MAX_SECONDS}, inclusive"
        causes.append(invalid(f"{path}.activeDeadlineSeconds", deadline, detail))
    for field in ("hostname", "subdomain"):
        if name := spec.get(field):
            causes += [invalid(f"{path}.{field}", name, problem) for problem in name_problems(name, NameRule.LABEL)]
    if (group := spec.get("schedulingGroup")) is not None:
        name, field = group.get("podGroupName") or "", f"{path}.schedulingGroup.podGroupName"
        causes += [invalid(field, name, problem) for problem in name_problems(name, NameRule.SUBDOMAIN)]
    causes += _validate_tolerations(dicts(spec.get("tolerations")), f"{path}.tolerations")
    for index, alias in enumerate(dicts(spec.get("hostAliases"))):
        if not alias.get("ip"):
            causes.append(required(f"{path}.hostAliases[{index}].ip"))
    return [*causes, *_validate_names(dicts(spec.get("schedulingGates")), f"{path}.schedulingGates")]


def _validate_tolerations(tolerations: list[Object], path: str) -> Iterator[FieldError]:
    for index, toleration in enumerate(tolerations):
        place, operator = f"{path}[{index}]", toleration.get("operator") or "Equal"
        if not toleration.get("key") and operator != "Exists":
            yield invalid(f"{place}.operator", operator, _KEYLESS)
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{place}.effect", toleration.get("effect") or "", detail)
        if operator not in _TOLERATION_OPERATORS:
            yield not_supported(f"{place}.operator", operator, _TOLERATION_OPERATORS)


def _validate_names(entries: list[Object], path: str) -> Iterator[FieldError]:
    """What is wrong with the names of scheduling gates."""
    names = [entry.get("name") or "" for entry in entries]
    for index, name in enumerate(names):
        if not name:
            yield required(f"{path}[{index}].name")
        elif name in names[:index]:
            yield duplicate(f"{path}[{index}]", name)


def _validate_containers(spec: Object, path: str, volumes: Collection[str]) -> list[FieldError]:
    causes: list[FieldError] = []
    names: set[str] = set()
    if not spec.get("containers"):
        causes.append(required(f"{path}.containers"))
    for field in ("containers", "initContainers"):
        for index, container in enumerate(dicts(spec.get(field))):
            place, name = f"{path}.{field}[{index}]", container.get("name")
            causes += _validate_container(container, place)
            causes += validate_mounts(container, f"{place}.volumeMounts", volumes)
            if name and name in names:
                causes.append(duplicate(f"{place}.name", name))
            names.add(name or "")
            if field == "initContainers" and container.get("restartPolicy") != "Always":
                watched = [each for each in ("lifecycle", *PROBES) if container.get(each) is not None]
                causes += [forbidden(f"{place}.{each}", _NOT_IN_INIT) for each in watched]
    return causes


def _validate_container(container: Object, path: str) -> Iterator[FieldError]:
    name = container.get("name")
    if not name:
        yield required(f"{path}.name")
    else:
        yield from (invalid(f"{path}.name", name, problem) for problem in name_problems(name, NameRule.LABEL))
    if not container.get("image"):
        yield required(f"{path}.image")
    if container.get("imagePullPolicy") not in _PULL_POLICIES:
        yield not_supported(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    for index, port in enumerate(dicts(container.get("ports"))):
        yield from _validate_port(port, f"{path}.ports[{index}]")
    for index, variable in enumerate(dicts(container.get("env"))):
        yield from _validate_variable(variable, f"{path}.env[{index}]")
    for index, source in enumerate(dicts(container.get("envFrom"))):
        yield from _validate_bulk_source(source, f"{path}.envFrom[{index}]")
    yield from _validate_resources(container.get("resources") or {}, f"{path}.resources")
    for field in PROBES:
        if container.get(field) is not None:
            yield from _validate_probe(container[field], f"{path}.{field}")


def _validate_port(port: Object, path: str) -> Iterator[FieldError]:
    number = port.get("containerPort")
    if not number:
        yield required(f"{path}.containerPort")
    elif not 1 <= number <= _MAX_PORT:
        yield invalid(f"{path}.containerPort", number, f"must be between 1 and {_MAX_PORT}, inclusive")
    if port.get("protocol") not in _PROTOCOLS:
        yield not_supported(f"{path}.protocol", port.get("protocol"), _PROTOCOLS)


def _validate_variable(variable: Object, path: str) -> Iterator[FieldError]:
    name, source = variable.get("name"), variable.get("valueFrom")
    if not name:
        yield required(f"{path}.name")
    elif any(not " " <= character <= "~" or character == "=" for character in name):
        yield invalid(f"{path}.name", name, _VARIABLE_TEXT)
    if source is None:
        return
    path = f"{path}.valueFrom"
    kinds = [kind for kind in _SOURCES if source.get(kind) is not None]
    if not kinds:
        yield invalid(path, "", _NO_SOURCE)
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(kinds) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")
    for kind in kinds:
        wanted = {"fieldRef": ("fieldPath",), "resourceFieldRef": ("resource",)}.get(kind, ("name", "key"))
        yield from (required(f"{path}.{kind}.{field}") for field in wanted if not source[kind].get(field))


def _validate_bulk_source(source: Object, path: str) -> Iterator[FieldError]:
    kinds = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
    if not kinds:
        yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(kinds) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")
    yield from (required(f"{path}.{kind}.name") for kind in kinds if not source[kind].get("name"))


def _validate_resources(resources: Object, path: str) -> Iterator[FieldError]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    wrong = [*_validate_amounts(limits, f"{path}.limits"), *_validate_amounts(requests, f"{path}.requests")]
    yield from wrong
    for name, amount in {} if wrong else requests.items():
        shared = "/" not in name and not name.startswith("hugepages-")
        if name not in limits:
            if not shared:
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
            continue
        wanted, allowed = Quantity.parse(amount), Quantity.parse(limits[name])
        if not shared and wanted.amount != allowed.amount:
            yield invalid(f"{path}.requests", str(wanted), f"must be equal to {name} limit of {allowed}")
        elif wanted.amount > allowed.amount:
            yield invalid(f"{path}.requests", str(wanted), f"must be less than or equal to {name} limit of {allowed}")


def _validate_amounts(amounts: Object, path: str) -> Iterator[FieldError]:
    for name, amount in amounts.items():
        place = f"{path}[{name}]"
        yield from (invalid(place, name, problem) for problem in qualified_name_problems(name))
        if "/" not in name and name not in _FRACTIONAL and not name.startswith("hugepages-"):
            yield invalid(place, name, "must be a standard resource for containers")
        problems = validate_quantity(place, amount)
        yield from problems
        if not problems and name not in _FRACTIONAL and Quantity.parse(amount).amount % 1:
            yield invalid(place, amount, "must be an integer")


def _validate_probe(probe: Object, path: str) -> Iterator[FieldError]:
    handlers = [handler for handler in _HANDLERS if probe.get(handler) is not None]
    if not handlers:
        yield required(path, "must specify a handler type")
        return
    yield from (forbidden(f"{path}.{handler}", "may not specify more than 1 handler type") for handler in handlers[1:])
    for field in _PROBE_NUMBERS:
        yield from not_negative(f"{path}.{field}", probe.get(field))
    handler, place = probe[handlers[0]], f"{path}.{handlers[0]}"
    if handlers[0] == "exec":
        if not handler.get("command"):
            yield required(f"{place}.command")
    elif not _is_port(handler.get("port")):
        yield invalid(f"{place}.port", handler.get("port") or 0, f"must be between 1 and {_MAX_PORT}, inclusive")


def _is_port(port: Any) -> bool:
    return bool(port) if isinstance(port, str) else isinstance(port, int) and 1 <= port <= _MAX_PORT
