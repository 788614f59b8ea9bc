"""The field that names a missing object for which a pod waits, or without which it is not created.

Kubelet, scheduler and admission tell what is missing, but not who asks for it: the TrainJob may, or its runtime. The
objects themselves are none of the manager's business, so what is missing is known once a pod waits for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.objects import Object

_MISSING = re.compile(
    r'\b(secret|configmap|persistentvolumeclaim|serviceaccount|runtimeclass) "([^"]+)" not found', re.IGNORECASE
)
_MISSING_KEY = re.compile(r"couldn't find key \S+ in (secret|configmap) (?:[^/\s]+/)?(\S+)", re.IGNORECASE)
_MISSING_CLASS = re.compile(r"no (priorityclass) with name (\S+) was found", re.IGNORECASE)

_FIELDS: dict[str, frozenset[tuple[str, str]]] = {
    "secret": frozenset(
        {("secretRef", "name"), ("secretKeyRef", "name"), ("secret", "secretName"), ("secret", "name")}
    ),
    "configmap": frozenset({("configMapRef", "name"), ("configMapKeyRef", "name"), ("configMap", "name")}),
    "persistentvolumeclaim": frozenset({("persistentVolumeClaim", "claimName")}),
    "serviceaccount": frozenset({("", "serviceAccountName")}),
    "priorityclass": frozenset({("", "priorityClassName")}),
    "runtimeclass": frozenset({("", "runtimeClassName")}),
    "scheduler": frozenset({("", "schedulerName")}),
}
"""By kind, the fields that name an object, each with the member that contains it, "" for any (Kubernetes API
reference, "Pod")."""


class Named(NamedTuple):
    """An object that a field may name."""

    kind: str
    """In lower case."""
    name: str


def missing_object(message: str) -> Named | None:
    """The missing object that a message names; None without one."""
    found = _MISSING.search(message) or _MISSING_KEY.search(message) or _MISSING_CLASS.search(message)
    return Named(found[1].lower(), found[2]) if found is not None else None


def fields_naming(wanted: Named, spec: Object) -> list[str]:
    """Paths of the fields that name an object.

    Args:
        wanted: the object.
        spec: of a TrainJob or JobSet.
    """
    fields = _FIELDS[wanted.kind]
    return [
        path
        for path, parent, name, value in _texts(spec, "", "spec")
        if value == wanted.name and ((parent, name) in fields or ("", name) in fields)
    ]


def _texts(value: object, parent: str, path: str) -> Iterator[tuple[str, str, str, str]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, parent, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    for name, member in value.items():
        if isinstance(member, str):
            yield f"{path}.{name}", parent, name, member
        else:
            yield from _texts(member, name, f"{path}.{name}")
