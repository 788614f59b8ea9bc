"""Attributes: what admission gets to know about one request."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.authentication.user import User


class Operation(StrEnum):
    """What a request does to an object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class GroupVersionKind(NamedTuple):
    """A group, version and kind."""

    group: str
    version: str
    kind: str

    @classmethod
    def of(cls, resource: Resource) -> GroupVersionKind:
        """The kind of a resource's objects."""
        return cls(resource.group, resource.version, resource.kind)


SUBRESOURCE_KINDS = {
    "scale": GroupVersionKind("autoscaling", "v1", "Scale"),
    "binding": GroupVersionKind("", "v1", "Binding"),
    "eviction": GroupVersionKind("policy", "v1", "Eviction"),
}
"""Kinds of the objects that go to subresources; the others take the object itself."""


@dataclass(frozen=True, slots=True)
class RuleTarget:
    """The part of a request's target that rules match."""

    operation: Operation
    resource: Resource
    subresource: str = ""

    @property
    def kind(self) -> GroupVersionKind:
        """Kind of the object in the request."""
        return SUBRESOURCE_KINDS.get(self.subresource) or GroupVersionKind.of(self.resource)


@dataclass(frozen=True, slots=True)
class Attributes:
    """One request on its way through admission."""

    endpoint: RuleTarget
    namespace: str
    """"" for cluster-scoped objects, except that a Namespace counts as its own."""
    name: str
    """"" for a creation whose name the server makes up, and when a whole collection is deleted."""
    object: Object | None
    """The new object; None for a deletion."""
    old: Object | None
    """The stored object; None for a creation."""
    user: User
    options: Object
    """CreateOptions, UpdateOptions or DeleteOptions of meta.k8s.io/v1."""
    dry_run: bool = False
