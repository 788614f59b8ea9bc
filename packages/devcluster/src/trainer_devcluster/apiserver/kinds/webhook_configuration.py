"""Webhook configurations: which webhooks admission calls; calling them has its own package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from trainer.kube.field_errors import FieldError, duplicate, invalid, not_supported, required
from trainer.kube.names import subdomain_problems
from trainer.kube.objects import Object
from trainer.kube.resource import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS, Resource
from trainer_devcluster.apiserver.admission.conditions import MatchCondition
from trainer_devcluster.apiserver.admission.review import REVIEW_VERSION
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import dicts, fill, section, validate_label_selector

_TIMEOUT_SECONDS = 10
_MAX_TIMEOUT: Final = 30
_CHOICES: Final = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "reinvocationPolicy": ("IfNeeded", "Never"),
    "sideEffects": ("None", "NoneOnDryRun"),
}
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_RULE_LISTS: Final = ("operations", "apiGroups", "apiVersions", "resources")


class WebhookConfigurationStrategy(Strategy):
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
        return list(_validate_webhooks(dicts(obj.get("webhooks"))))


def _validate_webhooks(webhooks: list[Object]) -> Iterator[FieldError]:
    """What is wrong with the `webhooks` of a configuration, defaults filled in."""
    names = [webhook.get("name") or "" for webhook in webhooks]
    for index, webhook in enumerate(webhooks):
        path, name = f"webhooks[{index}]", names[index]
        if not name:
            yield required(f"{path}.name")
        elif problems := subdomain_problems(name):
            yield invalid(f"{path}.name", name, ",".join(problems))
        elif name.count(".") < 2:
            yield invalid(f"{path}.name", name, "should be a domain with at least three segments separated by dots")
        elif name in names[:index]:
            yield duplicate(f"{path}.name", name)
        for at, rule in enumerate(dicts(webhook.get("rules"))):
            yield from _validate_rule(rule, f"{path}.rules[{at}]")
        yield from _validate_call(webhook, path)
        for field in ("namespaceSelector", "objectSelector"):
            yield from validate_label_selector(webhook[field], f"{path}.{field}")
        for at, condition in enumerate(dicts(webhook.get("matchConditions"))):
            yield from _validate_condition(condition, f"{path}.matchConditions[{at}]")


def _validate_rule(rule: Object, path: str) -> Iterator[FieldError]:
    yield from (required(f"{path}.{field}") for field in _RULE_LISTS if not rule.get(field))
    for index, operation in enumerate(rule.get("operations") or ()):
        if operation not in _OPERATIONS:
            yield not_supported(f"{path}.operations[{index}]", operation, _OPERATIONS)


def _validate_call(webhook: Object, path: str) -> Iterator[FieldError]:
    """What is wrong with where a webhook is and how it is called."""
    for field, supported in _CHOICES.items():
        if webhook.get(field) is not None and webhook[field] not in supported:
            yield not_supported(f"{path}.{field}", webhook[field], supported)
    if webhook.get("sideEffects") is None:
        yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    if not 1 <= webhook["timeoutSeconds"] <= _MAX_TIMEOUT:
        detail = f"the timeout value must be between 1 and {_MAX_TIMEOUT} seconds"
        yield invalid(f"{path}.timeoutSeconds", webhook["timeoutSeconds"], detail)
    versions = webhook.get("admissionReviewVersions") or []
    if REVIEW_VERSION not in versions:
        yield invalid(f"{path}.admissionReviewVersions", versions, f"must include {REVIEW_VERSION}")
    url, service = webhook["clientConfig"].get("url"), webhook["clientConfig"].get("service")
    if (url is None) == (service is None):
        yield required(f"{path}.clientConfig", "exactly one of url or service is required")
    elif service is not None:
        place = f"{path}.clientConfig.service"
        yield from (required(f"{place}.{field}") for field in ("name", "namespace") if not service.get(field))
    elif urlsplit(url).scheme != "https":
        detail = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
        yield invalid(f"{path}.clientConfig.url", url, detail)


def _validate_condition(condition: Object, path: str) -> Iterator[FieldError]:
    expression = condition.get("expression") or ""
    if not condition.get("name"):
        yield required(f"{path}.name")
    if not expression.strip():
        yield required(f"{path}.expression")
        return
    try:
        MatchCondition.compile("", expression)
    except ValueError as error:
        yield invalid(f"{path}.expression", expression, str(error))


def _definition(resource: Resource, *, mutating: bool) -> ResourceDefinition:
    return ResourceDefinition(
        resource,
        WebhookConfigurationStrategy(mutating=mutating),
        singular=resource.kind.lower(),
        categories=("api-extensions",),
    )


MUTATING_WEBHOOK_CONFIGURATION = _definition(MUTATING_WEBHOOK_CONFIGURATIONS, mutating=True)
VALIDATING_WEBHOOK_CONFIGURATION = _definition(VALIDATING_WEBHOOK_CONFIGURATIONS, mutating=False)
