"""Webhooks: one entry of a webhook configuration, which requests it asks to see, and how it is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from trainer.kube.objects import Object, ObjectKey, metadata_of, name_of
from trainer.kube.resource import NAMESPACES, Resource
from trainer.kube.selectors import LabelSelector
from trainer_devcluster.apiserver.admission.attributes import Attributes, Operation, RuleTarget
from trainer_devcluster.apiserver.admission.conditions import MatchCondition
from trainer_devcluster.apiserver.admission.namespaces import PARTITION as NAMESPACE_PARTITION
from trainer_devcluster.apiserver.storage.storage import Partition, Storage
from trainer_devcluster.apiserver.webhooks.client import ClientConfig
from trainer_kube_testing.api_semantics import statuses

_ALL = "*"
_EXEMPT_GROUP = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class WebhookRule:
    """One entry of `rules`; everything that it says has to hold."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """Pairs of resource and subresource; "" is the object itself, `*` as a subresource includes it."""
    scope: str = _ALL

    @classmethod
    def of(cls, entry: Object) -> WebhookRule:
        """Read an entry that is defaulted and valid."""
        pairs = (text.partition("/") for text in entry["resources"])
        return cls(
            frozenset(entry["operations"]),
            frozenset(entry["apiGroups"]),
            frozenset(entry["apiVersions"]),
            tuple((resource, subresource) for resource, _, subresource in pairs),
            entry.get("scope") or _ALL,
        )

    def matches(self, endpoint: RuleTarget, resource: Resource) -> bool:
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


_WITHOUT_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of a configuration."""

    configuration: str
    """Name of the configuration."""
    index: int
    """Its place there."""
    name: str
    client: ClientConfig
    rules: tuple[WebhookRule, ...]
    equivalent: bool
    """Whether a request for another version of a resource counts as one for the version in the rules."""
    fails_open: bool
    """Whether requests go on when it cannot be called."""
    timeout: int
    """Seconds."""
    supports_dry_run: bool
    reinvocable: bool
    """Whether it is called again when a webhook after it has changed the object."""
    namespace_selector: LabelSelector
    object_selector: LabelSelector
    conditions: tuple[MatchCondition, ...]

    @classmethod
    def of(cls, configuration: str, index: int, entry: Object) -> Webhook:
        """Read an entry that is defaulted and valid."""
        conditions = entry.get("matchConditions") or ()
        return cls(
            configuration=configuration,
            index=index,
            name=entry["name"],
            client=ClientConfig.of(entry["clientConfig"]),
            rules=tuple(map(WebhookRule.of, entry.get("rules") or ())),
            equivalent=entry["matchPolicy"] == "Equivalent",
            fails_open=entry["failurePolicy"] == "Ignore",
            timeout=entry["timeoutSeconds"],
            supports_dry_run=entry["sideEffects"] in _WITHOUT_SIDE_EFFECTS,
            reinvocable=entry.get("reinvocationPolicy") == "IfNeeded",
            namespace_selector=LabelSelector.from_object(entry["namespaceSelector"]),
            object_selector=LabelSelector.from_object(entry["objectSelector"]),
            conditions=tuple(MatchCondition.compile(each["name"], each["expression"]) for each in conditions),
        )

    def wants(self, endpoint: RuleTarget, resource: Resource) -> bool:
        """Whether one of its rules means the request, its resource taken for `resource`."""
        return any(rule.matches(endpoint, resource) for rule in self.rules)


def webhooks_of(configuration: Object) -> list[Webhook]:
    """The webhooks of a stored configuration, in their order."""
    name = name_of(configuration)
    return [Webhook.of(name, index, entry) for index, entry in enumerate(configuration.get("webhooks") or ())]
