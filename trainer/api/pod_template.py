"""Pod templates, checked field by field: plain JSON in our models, in which a mistake would fail a JobSet late."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from trainer.api.builtin_schemas import built_in_schema
from trainer.api.container import check_container
from trainer.api.labels import check_keys, check_metadata
from trainer.api.schema_check import check_value, compile_schema
from trainer.kube.field_errors import duplicate, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.schema_check import Node
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_CONTAINERS = ("initContainers", "containers")


def pod_template_errors(template: Object, path: str) -> list[FieldError]:
    """What is wrong with a pod template of a runtime, whatever a TrainJob adds to it; fields start with `path`."""
    errors = check_value(template, _schema(), path)
    return errors or list(semantic_pod_template_errors(template, path))


def semantic_pod_template_errors(template: Object, path: str) -> Iterator[FieldError]:
    """What is wrong with a pod template that fits its schema."""
    yield from check_metadata(template.get("metadata"), f"{path}.metadata")
    spec, path = template["spec"], f"{path}.spec"
    names: set[str] = set()
    for kind in _CONTAINERS:
        for index, container in enumerate(spec.get(kind) or []):
            field = f"{path}.{kind}[{index}]"
            if container["name"] in names:
                yield duplicate(f"{field}.name", container["name"])
            names.add(container["name"])
            yield from check_container(container, field)
    yield from check_volumes(spec.get("volumes"), f"{path}.volumes")
    yield from check_keys(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from check_tolerations(spec.get("tolerations"), f"{path}.tolerations")


def check_volumes(volumes: list[Object] | None, path: str) -> Iterator[FieldError]:
    """Refuse volumes of several types; one of none is an emptyDir for Kubernetes."""
    for index, volume in enumerate(volumes or []):
        types = [name for name, value in volume.items() if name != "name" and value is not None]
        if len(types) > 1:
            yield invalid(f"{path}[{index}]", volume["name"], f"has more than one volume type: {', '.join(types)}")


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


@functools.cache
def _schema() -> Node:
    return compile_schema(built_in_schema("PodTemplateSpec"))
