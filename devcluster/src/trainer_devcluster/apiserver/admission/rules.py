"""Rules: which requests a webhook asks to see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.kube.api_semantics import statuses
from trainer.kube.objects import ObjectKey, metadata_of
from trainer.kube.resource import NAMESPACES
from trainer_devcluster.apiserver.admission.attributes import Operation
from trainer_devcluster.apiserver.admission.namespaces import PARTITION as NAMESPACE_PARTITION
from trainer_devcluster.apiserver.storage.storage import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource
    from trainer_devcluster.apiserver.admission.attributes import Attributes, Endpoint
    from trainer_devcluster.apiserver.admission.webhook import Webhook
    from trainer_devcluster.apiserver.storage.storage import Storage

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


def selects(webhook: Webhook, attributes: Attributes, storage: Storage) -> bool:
    """Whether the selectors of a webhook take in the object and its namespace.

    Raises:
        ApiError: 404, the namespace is gone.
    """
    return _selects_namespace(webhook, attributes, storage) and _selects_object(webhook, attributes)


def _selects_namespace(webhook: Webhook, attributes: Attributes, storage: Storage) -> bool:
    selector = webhook.namespace_selector
    if not selector.requirements or not attributes.namespace:
        return True
    return selector.matches(_namespace_labels(attributes, storage))


def _namespace_labels(attributes: Attributes, storage: Storage) -> Mapping[str, str]:
    endpoint = attributes.endpoint
    itself = Partition.of(endpoint.resource) == NAMESPACE_PARTITION and not endpoint.subresource
    if itself and endpoint.operation is not Operation.DELETE:
        return _labels(attributes.object)
    namespace = storage.get(NAMESPACE_PARTITION, ObjectKey("", attributes.namespace))
    if namespace is None:
        raise statuses.not_found(NAMESPACES, attributes.namespace)
    return _labels(namespace)


def _selects_object(webhook: Webhook, attributes: Attributes) -> bool:
    selector = webhook.object_selector
    if not selector.requirements:
        return True
    states = (attributes.object, attributes.old)
    return any(selector.matches(_labels(state)) for state in states if state is not None)


def _labels(obj: Object | None) -> Mapping[str, str]:
    return (metadata_of(obj).get("labels") or {}) if obj is not None else {}
