"""Rules: what one entry of a role allows (Kubernetes documentation, "Using RBAC Authorization")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.authorization.authorizer import Attributes

ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs, and what they may be done to: resources of API groups, or paths that belong to no resource."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    """`pods`, `pods/log`, `*/scale` or `*`."""
    names: tuple[str, ...] = ()
    """Objects by name; without any all of them."""
    paths: tuple[str, ...] = ()
    """Paths, a `*` at the end stands for anything."""
    _verbs: frozenset[str] = field(init=False, repr=False, compare=False)
    _groups: frozenset[str] = field(init=False, repr=False, compare=False)
    _resources: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make what lookups need; the class is frozen for everybody else."""
        object.__setattr__(self, "_verbs", frozenset(self.verbs))
        object.__setattr__(self, "_groups", frozenset(self.groups))
        object.__setattr__(self, "_resources", frozenset(self.resources))

    @classmethod
    def parse(cls, obj: Object) -> Self:
        """The rule in a PolicyRule of rbac.authorization.k8s.io/v1."""
        return cls(
            tuple(obj.get("verbs") or ()),
            tuple(obj.get("apiGroups") or ()),
            tuple(obj.get("resources") or ()),
            tuple(obj.get("resourceNames") or ()),
            tuple(obj.get("nonResourceURLs") or ()),
        )

    def to_object(self) -> Object:
        """The rule as a PolicyRule."""
        obj: Object = {"verbs": list(self.verbs)}
        lists = {
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.paths,
        }
        return obj | {name: list(values) for name, values in lists.items() if values}

    def allows(self, wanted: Attributes) -> bool:
        """Whether a request is one of those that the rule is about."""
        if wanted.verb not in self._verbs and ALL not in self._verbs:
            return False
        if wanted.path:
            return any(covers_path(path, wanted.path) for path in self.paths)
        if wanted.group not in self._groups and ALL not in self._groups:
            return False
        return self._has_resource(wanted) and (not self.names or wanted.name in self.names)

    def _has_resource(self, wanted: Attributes) -> bool:
        if ALL in self._resources:
            return True
        if not wanted.subresource:
            return wanted.resource in self._resources
        combined = f"{wanted.resource}/{wanted.subresource}"
        return combined in self._resources or f"*/{wanted.subresource}" in self._resources


EVERYTHING: Final = (Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), paths=(ALL,)))
"""What `cluster-admin` allows."""


def covers_path(pattern: str, path: str) -> bool:
    """Whether a path, which may itself be a pattern, is one of those that a pattern stands for."""
    if pattern in (ALL, path):
        return True
    return pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL))


def rules_in(role: Object) -> tuple[Rule, ...]:
    """The rules of a Role or ClusterRole."""
    return tuple(Rule.parse(entry) for entry in role.get("rules") or ())
