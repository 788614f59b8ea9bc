"""Checks of containers, their environment, mounts and resources that a schema cannot express."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trainer.api import patterns
from trainer.api.bounds import LONGEST_WORD
from trainer.api.image_reference import check_image
from trainer.api.labels import is_qualified_name
from trainer.kube.field_errors import OMITTED, FieldError, duplicate, invalid, not_supported, required, too_long
from trainer.kube.objects import Object
from trainer.kube.quantity import parse_quantity

_STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
HUGE_PAGES = "hugepages-"
"""Beginning of resources such as hugepages-2Mi."""
_NATIVE_DOMAIN = "kubernetes.io/"
_VALUE_SOURCES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")
_OBJECT_NAME = patterns.compiled(patterns.OBJECT_NAME)
_ENV_SOURCES = ("configMapRef", "secretRef")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")
_LIFECYCLE_HANDLERS = ("exec", "httpGet", "sleep", "tcpSocket")
_POD_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_POD_METADATA = re.compile(r"metadata\.(labels|annotations)\['.+'\]")


def check_container(container: Object, path: str) -> Iterator[FieldError]:
    """Refuse a container, valid by its schema, with which the API server would refuse the pod."""
    yield from check_image(container.get("image"), f"{path}.image")
    for name in ("command", "args"):
        yield from check_words(container.get(name), f"{path}.{name}")
    yield from check_env(container.get("env"), f"{path}.env")
    yield from check_env_from(container.get("envFrom"), f"{path}.envFrom")
    yield from check_resources(container.get("resources"), f"{path}.resources")
    yield from check_mounts(container.get("volumeMounts"), f"{path}.volumeMounts")
    yield from _check_handlers(container, path)
    yield from _check_port_names(container, path)


def check_words(words: list[str] | None, path: str) -> Iterator[FieldError]:
    """Refuse words of a command with which Linux starts no program; the schema counts characters, and Linux bytes."""
    for index, word in enumerate(words or []):
        if _bytes_of(word) >= LONGEST_WORD:
            yield too_long(f"{path}[{index}]", LONGEST_WORD - 1)


def check_env(variables: list[Object] | None, path: str) -> Iterator[FieldError]:
    """Refuse variables with two values, with an empty source, or with which Linux starts no program."""
    for index, variable in enumerate(variables or []):
        rest = LONGEST_WORD - _bytes_of(variable["name"]) - 2  # = and the zero byte at the end
        if _bytes_of(str(variable.get("value") or "")) > rest:
            yield too_long(f"{path}[{index}].value", max(rest, 0))
        source = variable.get("valueFrom")
        if source is None:
            continue
        field = f"{path}[{index}].valueFrom"
        if variable.get("value"):
            yield invalid(field, OMITTED, "may not be specified when value is not empty")
        yield from _check_one(source, _VALUE_SOURCES, field)
        pod_field = (source.get("fieldRef") or {}).get("fieldPath")
        if pod_field is not None and pod_field not in _POD_FIELDS and not _POD_METADATA.fullmatch(pod_field):
            supported = (*_POD_FIELDS, "metadata.labels['KEY']", "metadata.annotations['KEY']")
            yield not_supported(f"{field}.fieldRef.fieldPath", pod_field, supported)


def _bytes_of(text: str) -> int:
    """The length in UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def check_env_from(sources: list[Object] | None, path: str) -> Iterator[FieldError]:
    """Refuse sources that are not exactly one ConfigMap or Secret with a name."""
    for index, source in enumerate(sources or []):
        yield from _check_one(source, _ENV_SOURCES, f"{path}[{index}]")
        for name in _ENV_SOURCES:
            reference = source.get(name)
            if reference is None:
                continue
            field, referred = f"{path}[{index}].{name}.name", reference.get("name")
            if not referred:
                yield required(field)
            elif not _OBJECT_NAME.match(referred):
                yield invalid(field, referred, patterns.WORDS[patterns.OBJECT_NAME])


def check_mounts(mounts: list[Object] | None, path: str) -> Iterator[FieldError]:
    """Refuse mounts with a subPath that leaves the volume."""
    for index, mount in enumerate(mounts or []):
        field, inside = f"{path}[{index}]", mount.get("subPath") or ""
        if inside.startswith("/") or ".." in inside.split("/"):
            yield invalid(f"{field}.subPath", inside, "must be a relative path without ..")
        if inside and mount.get("subPathExpr"):
            yield invalid(f"{field}.subPathExpr", mount["subPathExpr"], "subPathExpr and subPath exclude each other")


def check_resources(resources: Object | None, path: str) -> Iterator[FieldError]:
    """Refuse negative amounts, fractions of extended resources, and requests above their limit."""
    limits = (resources or {}).get("limits") or {}
    for kind in ("limits", "requests"):
        for name, amount in ((resources or {}).get(kind) or {}).items():
            yield from _check_amount(name, amount, f"{path}.{kind}[{name}]")
    for name, amount in ((resources or {}).get("requests") or {}).items():
        yield from check_request(name, amount, limits.get(name), f"{path}.requests[{name}]")


def check_request(name: str, amount: Any, limit: Any, path: str) -> Iterator[FieldError]:
    """Refuse a request for more of a resource than its limit, if it has one."""
    if limit is not None and parse_quantity(amount) > parse_quantity(limit):
        yield invalid(path, amount, f"must be less than or equal to {name} limit of {limit}")


def _check_amount(name: str, amount: Any, path: str) -> Iterator[FieldError]:
    if not is_qualified_name(name) or not (_is_standard(name) or "/" in name):
        yield invalid(path, name, "must be a standard resource (cpu, memory ...) or have a domain: nvidia.com/gpu")
        return
    quantity = parse_quantity(amount)
    if quantity < 0:
        yield invalid(path, amount, "must be greater than or equal to 0")
    elif not _is_standard(name) and quantity != quantity.to_integral_value():
        yield invalid(path, amount, "must be an integer: this resource has whole units only")


def _is_standard(name: str) -> bool:
    return name in _STANDARD_RESOURCES or name.startswith((HUGE_PAGES, _NATIVE_DOMAIN))


def _check_one(source: Object, members: tuple[str, ...], path: str) -> Iterator[FieldError]:
    present = [name for name in members if source.get(name) is not None]
    if len(present) != 1:
        given = " and ".join(present) or "none"
        yield invalid(path, OMITTED, f"must have exactly one of {', '.join(members)}; it has {given}")


def _check_handlers(container: Object, path: str) -> Iterator[FieldError]:
    """Refuse probes and hooks without a handler, or with two."""
    for probe in _PROBES:
        if container.get(probe) is not None:
            yield from _check_one(container[probe], _PROBE_HANDLERS, f"{path}.{probe}")
    for hook in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(hook)
        if handler is not None:
            yield from _check_one(handler, _LIFECYCLE_HANDLERS, f"{path}.lifecycle.{hook}")


def _check_port_names(container: Object, path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, port in enumerate(container.get("ports") or []):
        name = port.get("name")
        if name and name in seen:
            yield duplicate(f"{path}.ports[{index}].name", name)
        if name and ("--" in name or not re.search("[a-z]", name)):
            yield invalid(f"{path}.ports[{index}].name", name, "must contain a letter, and not two - in a row")
        seen.add(name)
