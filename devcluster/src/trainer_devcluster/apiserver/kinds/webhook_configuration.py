"""Webhook configurations: which webhooks admission calls; calling them has its own package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.resource import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.kinds.editing import fill, section
from trainer_devcluster.apiserver.kinds.pods.pod_spec import dicts
from trainer_devcluster.apiserver.kinds.webhook_validation import validate_webhooks

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext

_TIMEOUT_SECONDS = 10


class WebhookConfigurationStrategy(StoreOnlyStrategy):
    """MutatingWebhookConfiguration and ValidatingWebhookConfiguration of admissionregistration.k8s.io/v1."""

    def __init__(self, *, mutating: bool) -> None:
        self._mutating = mutating

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in how each webhook is called."""
        for webhook in dicts(obj.get("webhooks")):
            fill(webhook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=_TIMEOUT_SECONDS)
            fill(webhook, namespaceSelector={}, objectSelector={})
            if self._mutating:
                fill(webhook, reinvocationPolicy="Never")
            for rule in dicts(webhook.get("rules")):
                fill(rule, scope="*")
            service = section(webhook, "clientConfig").get("service")
            if isinstance(service, dict):
                fill(service, port=443)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check every webhook."""
        return validate_webhooks(dicts(obj.get("webhooks")))


def _definition(resource: Resource, *, mutating: bool) -> ResourceDefinition:
    return ResourceDefinition(
        resource,
        WebhookConfigurationStrategy(mutating=mutating),
        singular=resource.kind.lower(),
        categories=("api-extensions",),
    )


MUTATING_WEBHOOK_CONFIGURATION = _definition(MUTATING_WEBHOOK_CONFIGURATIONS, mutating=True)
VALIDATING_WEBHOOK_CONFIGURATION = _definition(VALIDATING_WEBHOOK_CONFIGURATIONS, mutating=False)
