"""Configurations: which webhooks the cluster has at the moment, and which of them a request concerns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import anyio

from trainer.kube.resource import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS, Resource
from trainer_devcluster.apiserver.admission.attributes import RuleTarget
from trainer_devcluster.apiserver.admission.webhook import Webhook, is_exempt, webhooks_of
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceRegistry
from trainer_devcluster.apiserver.storage.storage import Partition, Storage

MUTATING: Final = Partition.of(MUTATING_WEBHOOK_CONFIGURATIONS)
VALIDATING: Final = Partition.of(VALIDATING_WEBHOOK_CONFIGURATIONS)


@dataclass(frozen=True, slots=True)
class Invocation:
    """A webhook that may have to be called for a request, and the version in which it wants to see the object."""

    webhook: Webhook
    endpoint: RuleTarget


class Configurations:
    """The webhooks of one kind of configuration; what requests concern is worked out once per endpoint."""

    def __init__(self, storage: Storage, registry: ResourceRegistry, partition: Partition) -> None:
        self._storage = storage
        self._registry = registry
        self._partition = partition
        self._seen: anyio.Event | None = None
        self._seen_registry = -1
        self._webhooks: list[Webhook] = []
        self._by_endpoint: dict[RuleTarget, tuple[Invocation, ...]] = {}

    def concerned(self, endpoint: RuleTarget) -> tuple[Invocation, ...]:
        """The webhooks whose rules mean a request, by name of their configuration and then by their order in it."""
        self._refresh()
        if not self._webhooks:
            return ()
        found = self._by_endpoint.get(endpoint)
        if found is None:
            found = self._by_endpoint[endpoint] = tuple(self._find(endpoint))
        return found

    def _refresh(self) -> None:
        # The event of the next change is another one after every change.
        changed = self._storage.changed(self._partition)
        if changed is not self._seen:
            self._seen = changed
            stored = self._storage.snapshot(self._partition)
            self._webhooks = [webhook for configuration in stored for webhook in webhooks_of(configuration)]
            self._by_endpoint.clear()
        if self._registry.version != self._seen_registry:
            self._seen_registry = self._registry.version
            self._by_endpoint.clear()

    def _find(self, endpoint: RuleTarget) -> list[Invocation]:
        if is_exempt(endpoint.resource):
            return []
        equivalents = self._equivalents(endpoint.resource)
        found = []
        for webhook in self._webhooks:
            candidates = [endpoint.resource, *(equivalents if webhook.equivalent else ())]
            wanted = next((resource for resource in candidates if webhook.wants(endpoint, resource)), None)
            if wanted is not None:
                found.append(Invocation(webhook, replace(endpoint, resource=wanted)))
        return found

    def _equivalents(self, resource: Resource) -> list[Resource]:
        """The other served versions of a resource."""
        partition = Partition.of(resource)
        served = (definition.resource for definition in self._registry.definitions)
        return [other for other in served if other != resource and Partition.of(other) == partition]
