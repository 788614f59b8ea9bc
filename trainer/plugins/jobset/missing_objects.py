"""Which field names the Secret, ConfigMap or volume claim that a pod waits for.

Kubelet and scheduler tell what is missing, but not who asks for it: the TrainJob may, or its runtime. The Secrets
themselves are none of the manager's business, so what is missing is known once a pod waits for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.objects import Object

_MISSING = re.compile(r'\b(secret|configmap|persistentvolumeclaim) "([^"]+)" not found', re.IGNORECASE)
_MISSING_KEY = re.compile(r"couldn't find key \S+ in (secret|configmap) (?:[^/\s]+/)?(\S+)", re.IGNORECASE)

_FIELDS: dict[str, dict[str, tuple[str, ...]]] = {
    "secret": {"secretRef": ("name",), "secretKeyRef": ("name",), "secret": ("secretName", "name")},
    "configmap": {"configMapRef": ("name",), "configMapKeyRef": ("name",), "configMap": ("name",)},
    "persistentvolumeclaim": {"persistentVolumeClaim": ("claimName",)},
}
"""By kind: the members that refer to an object, and what in them is its name (Kubernetes API reference, "Pod")."""


def fields_naming(message: str, spec: Object) -> list[str]:
    """Paths of the fields that name what a message says is missing; none if it says nothing of the kind.

    Args:
        message: of the kubelet or the scheduler.
        spec: of a TrainJob or JobSet.
    """
    found = _MISSING.search(message) or _MISSING_KEY.search(message)
    if found is None:
        return []
    kind, name = found.groups()
    return [path for path, value in _references(spec, _FIELDS[kind.lower()], "spec") if value == name]


def _references(value: object, fields: dict[str, tuple[str, ...]], path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _references(item, fields, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    for name, member in value.items():
        if isinstance(member, dict):
            for field in fields.get(name, ()):
                yield f"{path}.{name}.{field}", member.get(field)
        yield from _references(member, fields, f"{path}.{name}")
