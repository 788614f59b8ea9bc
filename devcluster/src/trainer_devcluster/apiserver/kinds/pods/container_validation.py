"""Validation of containers (core/v1 Container)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from trainer.kube.field_errors import duplicate, forbidden, invalid, not_supported, required
from trainer_devcluster.apiserver.kinds.pods.environment_validation import validate_environment
from trainer_devcluster.apiserver.kinds.pods.lists import objects_in, validate_label_name, validate_strings
from trainer_devcluster.apiserver.kinds.pods.pod_spec import PROBES
from trainer_devcluster.apiserver.kinds.pods.probe_validation import validate_probe
from trainer_devcluster.apiserver.kinds.pods.resource_validation import validate_resources
from trainer_devcluster.apiserver.kinds.pods.volume_validation import validate_mounts

if TYPE_CHECKING:
    from collections.abc import Collection

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("FallbackToLogsOnError", "File")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_MAX_PORT: Final = 65535
_PORT_TEXT: Final = f"must be between 1 and {_MAX_PORT}, inclusive"
_MAX_PORT_NAME: Final = 15
_PORT_NAME: Final = re.compile(r"[-a-z0-9]+")
_NOT_IN_INIT: Final = "may not be set for init containers without restartPolicy=Always"


def validate_containers(spec: Object, path: str, volumes: Collection[str]) -> list[FieldError]:
    """What is wrong with the containers of a pod specification at `path`, init containers last."""
    causes: list[FieldError] = []
    names: set[str] = set()
    host_ports: set[tuple[Any, ...]] = set()
    if not spec.get("containers"):
        causes.append(required(f"{path}.containers"))
    for field in ("containers", "initContainers"):
        for place, container in objects_in(spec.get(field), f"{path}.{field}", causes):
            causes += _validate_container(container, place, volumes)
            causes += _validate_uniqueness(container, place, names)
            if field == "initContainers":
                causes += _validate_init_container(container, place)
            else:
                causes += _validate_host_ports(container, place, host_ports)
    return causes


def _validate_uniqueness(container: Object, path: str, names: set[str]) -> list[FieldError]:
    name = container.get("name")
    if not name:
        return []
    if name in names:
        return [duplicate(f"{path}.name", name)]
    names.add(name)
    return []


def _validate_init_container(container: Object, path: str) -> list[FieldError]:
    """Those that run to their end are not looked after."""
    if container.get("restartPolicy") == "Always":
        return []
    fields = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
    return [forbidden(f"{path}.{field}", _NOT_IN_INIT) for field in fields if container.get(field) is not None]


def _validate_container(container: Object, path: str, volumes: Collection[str]) -> list[FieldError]:
    name = container.get("name")
    causes = validate_label_name(name, f"{path}.name") if name else [required(f"{path}.name")]
    causes += _validate_image(container.get("image"), f"{path}.image")
    message_policy = container.get("terminationMessagePolicy")
    if message_policy not in _MESSAGE_POLICIES:
        causes.append(not_supported(f"{path}.terminationMessagePolicy", message_policy, _MESSAGE_POLICIES))
    causes += _validate_ports(container, f"{path}.ports")
    causes += validate_environment(container, path)
    causes += validate_mounts(container, f"{path}.volumeMounts", volumes)
    pull_policy = container.get("imagePullPolicy")
    if pull_policy not in _PULL_POLICIES:
        causes.append(not_supported(f"{path}.imagePullPolicy", pull_policy, _PULL_POLICIES))
    if isinstance(container.get("resources"), dict):
        causes += validate_resources(container["resources"], f"{path}.resources")
    for field in ("command", "args"):
        causes += validate_strings(container.get(field), f"{path}.{field}")
    for field in PROBES:
        if container.get(field) is not None:
            causes += validate_probe(container[field], f"{path}.{field}")
    return causes


def _validate_image(image: Any, path: str) -> list[FieldError]:
    if not image:
        return [required(path)]
    if image != str(image).strip():
        return [invalid(path, image, "must not have leading or trailing whitespace")]
    return []


def _validate_ports(container: Object, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    names: set[str] = set()
    for place, port in objects_in(container.get("ports"), path, causes):
        name = port.get("name")
        if name:
            problems = _port_name_problems(name)
            causes += [invalid(f"{place}.name", name, problem) for problem in problems]
            if not problems and name in names:
                causes.append(duplicate(f"{place}.name", name))
            names.add(name)
        causes += _validate_port(port, place)
    return causes


def _validate_port(port: Object, path: str) -> list[FieldError]:
    number, on_host, protocol = port.get("containerPort"), port.get("hostPort"), port.get("protocol")
    causes: list[FieldError] = []
    if not number:
        causes.append(required(f"{path}.containerPort"))
    elif not 1 <= number <= _MAX_PORT:
        causes.append(invalid(f"{path}.containerPort", number, _PORT_TEXT))
    if on_host and not 1 <= on_host <= _MAX_PORT:
        causes.append(invalid(f"{path}.hostPort", on_host, _PORT_TEXT))
    if not protocol:
        causes.append(required(f"{path}.protocol"))
    elif protocol not in _PROTOCOLS:
        causes.append(not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    return causes


def _validate_host_ports(container: Object, path: str, taken: set[tuple[Any, ...]]) -> list[FieldError]:
    causes: list[FieldError] = []
    for place, port in objects_in(container.get("ports"), f"{path}.ports", []):
        number = port.get("hostPort")
        if not number:
            continue
        identity = (port.get("protocol"), port.get("hostIP"), number)
        if identity in taken:
            shown = "/".join(str(part) for part in identity if part)
            causes.append(duplicate(f"{place}.hostPort", shown))
        taken.add(identity)
    return causes


def _port_name_problems(name: str) -> list[str]:
    """What keeps a text from being an IANA service name (RFC 6335, 5.1)."""
    problems = [] if len(name) <= _MAX_PORT_NAME else [f"must be no more than {_MAX_PORT_NAME} characters"]
    if not _PORT_NAME.fullmatch(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems
