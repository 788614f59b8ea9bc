"""The labels that the Training and the MPI Operator gave their pods, and what of a pod template refers to them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from trainer.kube.objects import Object, mapping_at, objects_in

CONTAINERS: Final = ("containers", "initContainers")
"""The lists of containers of a pod."""
_DOMAIN: Final = "training.kubeflow.org"
_LEGACY: Final = re.compile(
    r"(?:(?:pytorch|tf|xgboost|paddle|mpi|mxnet)-)?(job-name|job-role|replica-type|replica-index|group-name)"
)
"""Labels of operators before 1.6, some of them with the framework in front."""
_OF_ROLES: Final = frozenset({"replica-type", "replica-index", "job-role"})
"""Labels whose values tell the roles of a job apart."""
_LABEL: Final = re.compile(r"metadata\.labels\['(.+)'\]")
_TERMS: Final = (
    ("requiredDuringSchedulingIgnoredDuringExecution", ()),
    ("preferredDuringSchedulingIgnoredDuringExecution", ("podAffinityTerm",)),
)
"""Members of affinities to pods, with the path of the selector in each of their items."""


def old_label(key: str, own: Mapping[str, object]) -> str:
    """Which label of an operator a key is, such as replica-type; "" if it is none.

    Args:
        key: of a label.
        own: the labels of the template, which may have legacy ones for itself.
    """
    domain, _, name = key.partition("/")
    if domain == _DOMAIN:
        return name
    if key == "mpi-job-role":
        return "replica-type"
    found = _LEGACY.fullmatch(key) if key not in own else None
    return found[1] if found else ""


def label_of(reference: Object) -> str:
    """The label that a reference to a field of the pod names; "" for another field."""
    found = _LABEL.fullmatch(str(reference.get("fieldPath", "")))
    return found[1] if found else ""


def variables_of(spec: Object) -> Iterator[tuple[str, Object]]:
    """The variables of all containers of a pod, each with its path."""
    for kind in CONTAINERS:
        for container in objects_in(spec.get(kind)):
            for variable in objects_in(container.get("env")):
                yield f"{kind}[{container.get('name')}].env[{variable.get('name')}]", variable


def files_of(spec: Object) -> Iterator[tuple[str, Object]]:
    """The files of volumes of the downward API, each with its path."""
    for volume in objects_in(spec.get("volumes")):
        for source in (volume, *objects_in(mapping_at(volume, "projected").get("sources"))):
            for item in objects_in(mapping_at(source, "downwardAPI").get("items")):
                yield f"volumes[{volume.get('name')}].downwardAPI.items[{item.get('path')}]", item


def selectors_of(spec: Object) -> Iterator[tuple[str, Object]]:
    """What has a `labelSelector` of pods, each with its path."""
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = mapping_at(spec, "affinity", kind)
        for member, steps in _TERMS:
            for index, term in enumerate(objects_in(affinity.get(member))):
                path = ".".join((f"affinity.{kind}.{member}[{index}]", *steps))
                yield path, mapping_at(term, *steps)
    for index, constraint in enumerate(objects_in(spec.get("topologySpreadConstraints"))):
        yield f"topologySpreadConstraints[{index}]", constraint


def depends_on_role(template: Object) -> bool:
    """Whether a template refers to a label of its pods by which roles differ."""
    own, spec = mapping_at(template, "metadata", "labels"), mapping_at(template, "spec")
    references = [mapping_at(variable, "valueFrom", "fieldRef") for _, variable in variables_of(spec)]
    references += [mapping_at(item, "fieldRef") for _, item in files_of(spec)]
    keys = {label_of(reference) for reference in references}
    for _, holder in selectors_of(spec):
        keys |= keys_of(holder)
    return any(old_label(key, own) in _OF_ROLES for key in keys)


def keys_of(holder: Object) -> set[str]:
    """The labels that a selector names."""
    selector = mapping_at(holder, "labelSelector")
    expressions = objects_in(selector.get("matchExpressions"))
    return {*map(str, mapping_at(selector, "matchLabels")), *(str(each.get("key")) for each in expressions)}
