"""Rules: which requests a webhook asks to see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource
    from trainer_devcluster.apiserver.admission.attributes import Endpoint

_ALL = "*"
_EXEMPT_GROUP = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of `rules`; everything that it says has to hold."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """Pairs of resource and subresource; "" is the object itself, `*` as a subresource includes it."""
    scope: str = _ALL

    @classmethod
    def of(cls, entry: Object) -> Rule:
        """Read an entry that is defaulted and valid."""
        pairs = (text.partition("/") for text in entry["resources"])
        return cls(
            frozenset(entry["operations"]),
            frozenset(entry["apiGroups"]),
            frozenset(entry["apiVersions"]),
            tuple((resource, subresource) for resource, _, subresource in pairs),
            entry.get("scope") or _ALL,
        )

    def matches(self, endpoint: Endpoint, resource: Resource) -> bool:
        """Whether a request is meant.

        Args:
            endpoint: the request.
            resource: what to take its resource for; another one than its own when an equivalent is tried.
        """
        if self.scope != _ALL and (self.scope == "Namespaced") is not resource.namespaced:
            return False
        return (
            _named(self.operations, endpoint.operation)
            and _named(self.groups, resource.group)
            and _named(self.versions, resource.version)
            and any(
                plural in (_ALL, resource.plural) and subresource in (_ALL, endpoint.subresource)
                for plural, subresource in self.resources
            )
        )


def is_exempt(resource: Resource) -> bool:
    """Whether no webhook is ever asked: one that refuses its own configuration could not be repaired."""
    return resource.group == _EXEMPT_GROUP


def _named(names: frozenset[str], name: str) -> bool:
    return _ALL in names or name in names
