"""Pod templates, checked field by field: plain JSON in our models, in which a mistake would fail a JobSet late."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from trainer.api.bounds import bounded
from trainer.api.builtin_schemas import built_in_schema
from trainer.api.container import check_container
from trainer.api.labels import check_keys, check_metadata
from trainer.api.schema_check import SchemaNode, check_value, compile_schema
from trainer.kube.field_errors import FieldError, duplicate, invalid, required
from trainer.kube.objects import Object

_CONTAINERS = ("initContainers", "containers")


def pod_template_errors(template: Object, path: str) -> list[FieldError]:
    """Errors of a runtime's pod template that no TrainJob can avoid; fields start with `path`."""
    errors = check_value(template, _schema(), path)
    return errors or list(semantic_pod_template_errors(template, path))


def semantic_pod_template_errors(template: Object, path: str) -> Iterator[FieldError]:
    """Errors of a pod template that is valid by its schema."""
    yield from check_metadata(template.get("metadata"), f"{path}.metadata")
    spec, path = template["spec"], f"{path}.spec"
    names: set[str] = set()
    claims = frozenset(claim["name"] for claim in spec.get("resourceClaims") or [])
    for kind in _CONTAINERS:
        for index, container in enumerate(spec.get(kind) or []):
            field = f"{path}.{kind}[{index}]"
            if container["name"] in names:
                yield duplicate(f"{field}.name", container["name"])
            names.add(container["name"])
            yield from check_container(container, field)
            yield from _check_claims(container, claims, field)
    yield from check_volumes(spec.get("volumes"), f"{path}.volumes")
    yield from check_keys(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from check_tolerations(spec.get("tolerations"), f"{path}.tolerations")
    for name in ("affinity", "topologySpreadConstraints"):
        yield from _check_expressions(spec.get(name), f"{path}.{name}")
    if spec.get("dnsPolicy") == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        yield required(f"{path}.dnsConfig.nameservers", "dnsPolicy None leaves the pod without name servers otherwise")


def check_volumes(volumes: list[Object] | None, path: str) -> Iterator[FieldError]:
    """Refuse volumes of several types (one without a type is an emptyDir for Kubernetes) and steps out of a path."""
    for index, volume in enumerate(volumes or []):
        types = [name for name, value in volume.items() if name != "name" and value is not None]
        if len(types) > 1:
            yield invalid(f"{path}[{index}]", volume["name"], f"has more than one volume type: {', '.join(types)}")
        on_host = (volume.get("hostPath") or {}).get("path") or ""
        if ".." in on_host.split("/"):
            yield invalid(f"{path}[{index}].hostPath.path", on_host, "must not contain '..'")


def check_tolerations(tolerations: list[Object] | None, path: str) -> Iterator[FieldError]:
    """Refuse tolerations whose members contradict each other."""
    for index, toleration in enumerate(tolerations or []):
        field, exists = f"{path}[{index}]", toleration.get("operator") == "Exists"
        if not toleration.get("key") and not exists:
            yield invalid(f"{field}.operator", toleration.get("operator"), "must be Exists when key is empty")
        if exists and toleration.get("value"):
            yield invalid(f"{field}.value", toleration["value"], "must be empty when operator is Exists")
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
            yield invalid(
                f"{field}.effect", toleration.get("effect"), "must be NoExecute when tolerationSeconds is set"
            )


def _check_claims(container: Object, present: AbstractSet[str], path: str) -> Iterator[FieldError]:
    """Refuse claims of devices that the pod does not have."""
    for index, claim in enumerate((container.get("resources") or {}).get("claims") or []):
        if claim["name"] not in present:
            yield invalid(
                f"{path}.resources.claims[{index}].name", claim["name"], "is not one of the resourceClaims of the pod"
            )


def _check_expressions(value: object, path: str) -> Iterator[FieldError]:
    """Refuse requirements on labels, however deep, whose values do not go with their operator."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _check_expressions(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, member in value.items():
            if name != "matchLabels":
                yield from _check_expressions(member, f"{path}.{name}")
        if isinstance(value.get("operator"), str):
            yield from _check_values(value["operator"], value.get("values") or [], f"{path}.values")


def _check_values(operator: str, values: list[str], path: str) -> Iterator[FieldError]:
    if operator in {"In", "NotIn"} and not values:
        yield required(path, f"must not be empty when operator is {operator}")
    elif operator in {"Exists", "DoesNotExist"} and values:
        yield invalid(path, values, f"must be empty when operator is {operator}")
    elif operator in {"Gt", "Lt"} and (len(values) != 1 or not re.fullmatch(r"[-+]?[0-9]+", values[0])):
        yield invalid(path, values, f"must be a single integer when operator is {operator}")


@functools.cache
def _schema() -> SchemaNode:
    return compile_schema(bounded(built_in_schema("PodTemplateSpec")))
