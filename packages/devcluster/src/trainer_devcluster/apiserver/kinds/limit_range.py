"""LimitRanges (core/v1), and what the LimitRanger admission plugin does to new pods.

Kubernetes documentation, "Limit Ranges".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainer.kube.field_errors import FieldError, duplicate, forbidden, required
from trainer.kube.objects import Object, namespace_of
from trainer.kube.quantity import Quantity, parse_quantity
from trainer.kube.resource import LIMIT_RANGES
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import dicts, refused, section, validate_quantity

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_AMOUNTS: Final = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")


class LimitRangeStrategy(Strategy):
    """core/v1 LimitRange."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Derive the defaults of containers: limits from maxima, requests from limits and minima."""
        for item in dicts(section(obj, "spec").get("limits")):
            if item.get("type") != "Container":
                continue
            limits = {**(item.get("max") or {}), **(item.get("default") or {})}
            requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
            item.update({name: value for name, value in (("default", limits), ("defaultRequest", requests)) if value})

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check types and the order of amounts."""
        causes: list[FieldError] = []
        seen: set[str] = set()
        for index, item in enumerate(dicts(obj["spec"].get("limits"))):
            path, kind = f"spec.limits[{index}]", item.get("type") or ""
            if not kind:
                causes.append(required(f"{path}.type"))
            elif kind in seen:
                causes.append(duplicate(f"{path}.type", kind))
            seen.add(kind)
            causes += _validate_item(item, path)
        return causes


def admit_limits(pod: Object, context: WriteContext) -> None:
    """Give the containers of a new pod what the LimitRanges of its namespace have for them, in place; idempotent.

    Raises:
        ApiError: 403, a container or the pod asks for more or less than it may.
    """
    limit_ranges = [entry for entry in context.listed(LIMIT_RANGES) if namespace_of(entry) == namespace_of(pod)]
    for limit_range in limit_ranges:
        items = [item for item in dicts(limit_range["spec"].get("limits")) if item.get("type") == "Container"]
        notes = [
            note
            for item in items
            for kind, container in _containers(pod["spec"])
            for note in _apply_defaults(container, kind, item)
        ]
        if notes:
            section(pod["metadata"], "annotations")[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"
    problems = [
        problem
        for limit_range in limit_ranges
        for item in dicts(limit_range["spec"].get("limits"))
        for problem in _violations(pod["spec"], item)
    ]
    if problems:
        message = problems[0] if len(problems) == 1 else f"[{', '.join(dict.fromkeys(problems))}]"
        raise refused(pod, message)


def _apply_defaults(container: Object, kind: str, item: Object) -> list[str]:
    """Notes about the defaults that a container has got."""
    notes = []
    for field, source, noun in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
        defaults = item.get(source) or {}
        present = (container.get("resources") or {}).get(field) or {}
        lacking = sorted(name for name in defaults if name not in present)
        if lacking:
            amounts = section(section(container, "resources"), field)
            amounts.update({name: defaults[name] for name in lacking})
            notes.append(f"{', '.join(lacking)} {noun} for {kind} {container.get('name')}")
    return notes


def _violations(spec: Object, item: Object) -> Iterator[str]:
    if item.get("type") == "Container":
        for _, container in _containers(spec):
            resources = container.get("resources") or {}
            yield from _out_of_range(item, "Container", resources.get("requests") or {}, resources.get("limits") or {})
    elif item.get("type") == "Pod":
        requests, limits = (_total(spec, field) for field in ("requests", "limits"))
        yield from _out_of_range(item, "Pod", requests, limits)


def _out_of_range(item: Object, kind: str, requests: Object, limits: Object) -> Iterator[str]:
    for name, least in sorted((item.get("min") or {}).items()):
        start, bound = f"minimum {name} usage per {kind} is {least}", parse_quantity(least)
        if name not in requests:
            yield f"{start}.  No request is specified"
        elif parse_quantity(requests[name]) < bound:
            yield f"{start}, but request is {requests[name]}"
        elif name in limits and parse_quantity(limits[name]) < bound:
            yield f"{start}, but limit is {limits[name]}"
    for name, most in sorted((item.get("max") or {}).items()):
        start, bound = f"maximum {name} usage per {kind} is {most}", parse_quantity(most)
        if name not in limits:
            yield f"{start}.  No limit is specified"
        elif parse_quantity(limits[name]) > bound:
            yield f"{start}, but limit is {limits[name]}"
        elif name in requests and parse_quantity(requests[name]) > bound:
            yield f"{start}, but request is {requests[name]}"


def _total(spec: Object, field: str) -> Object:
    """What the containers of a pod, init containers aside, come to together."""
    total: dict[str, Quantity] = {}
    for container in dicts(spec.get("containers")):
        for name, amount in ((container.get("resources") or {}).get(field) or {}).items():
            total[name] = total.get(name, Quantity()) + Quantity.parse(amount)
    return {name: str(amount) for name, amount in total.items()}


def _containers(spec: Object) -> Iterator[tuple[str, Object]]:
    for field, kind in (("containers", "container"), ("initContainers", "init container")):
        for container in dicts(spec.get(field)):
            yield kind, container


def _validate_item(item: Object, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    if item.get("type") == "Pod":
        causes += [
            forbidden(f"{path}.{name}", "may not be specified when `type` is 'Pod'")
            for name in ("default", "defaultRequest")
            if item.get(name)
        ]
    for name in _AMOUNTS:
        for resource, amount in (item.get(name) or {}).items():
            causes += validate_quantity(f"{path}.{name}[{resource}]", amount)
    return causes


LIMIT_RANGE = ResourceDefinition(
    LIMIT_RANGES, LimitRangeStrategy(), singular="limitrange", short_names=("limits",), generation=False
)
