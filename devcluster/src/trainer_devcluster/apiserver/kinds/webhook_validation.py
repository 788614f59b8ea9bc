"""What is wrong with webhook configurations, as the API server's validation words it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from trainer.kube.field_errors import duplicate, invalid, not_supported, required, too_many
from trainer_devcluster.apiserver.admission.conditions import Condition
from trainer_devcluster.apiserver.admission.webhook import REVIEW_VERSIONS
from trainer_devcluster.apiserver.kinds.pods.pod_spec import dicts
from trainer_devcluster.apiserver.kinds.selector_validation import validate_label_selector
from trainer_devcluster.apiserver.objects.names import (
    qualified_name_problems,
    service_label_problems,
    subdomain_problems,
)

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_MAX_TIMEOUT: Final = 30
_MAX_CONDITIONS: Final = 64
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_CHOICES: Final = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "reinvocationPolicy": ("IfNeeded", "Never"),
}
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_RULE_LISTS: Final = ("operations", "apiGroups", "apiVersions", "resources")


def validate_webhooks(webhooks: list[Object]) -> list[FieldError]:
    """What is wrong with the `webhooks` of a configuration, defaults filled in."""
    causes: list[FieldError] = []
    names: set[str] = set()
    for index, webhook in enumerate(webhooks):
        path, name = f"webhooks[{index}]", webhook.get("name") or ""
        causes += _validate_webhook(webhook, path)
        if name and name in names:
            causes.append(duplicate(f"{path}.name", name))
        names.add(name)
    return causes


def _validate_webhook(webhook: Object, path: str) -> list[FieldError]:
    causes = _validate_name(webhook.get("name") or "", f"{path}.name")
    for index, rule in enumerate(dicts(webhook.get("rules"))):
        causes += _validate_rule(rule, f"{path}.rules[{index}]")
    for field, supported in _CHOICES.items():
        if field in webhook and webhook[field] not in supported:
            causes.append(not_supported(f"{path}.{field}", webhook[field], supported))
    side_effects = webhook.get("sideEffects")
    if side_effects is None:
        causes.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    elif side_effects not in _SIDE_EFFECTS:
        causes.append(not_supported(f"{path}.sideEffects", side_effects, _SIDE_EFFECTS))
    timeout = webhook["timeoutSeconds"]
    if not 1 <= timeout <= _MAX_TIMEOUT:
        detail = f"the timeout value must be between 1 and {_MAX_TIMEOUT} seconds"
        causes.append(invalid(f"{path}.timeoutSeconds", timeout, detail))
    for field in ("namespaceSelector", "objectSelector"):
        causes += validate_label_selector(webhook[field], f"{path}.{field}")
    causes += _validate_client(webhook["clientConfig"], f"{path}.clientConfig")
    causes += _validate_conditions(dicts(webhook.get("matchConditions")), f"{path}.matchConditions")
    versions = webhook.get("admissionReviewVersions") or []
    return causes + _validate_review_versions(versions, f"{path}.admissionReviewVersions")


def _validate_rule(rule: Object, path: str) -> list[FieldError]:
    causes = [required(f"{path}.{field}") for field in _RULE_LISTS if not rule.get(field)]
    causes += [
        not_supported(f"{path}.operations[{index}]", operation, _OPERATIONS)
        for index, operation in enumerate(rule.get("operations") or ())
        if operation not in _OPERATIONS
    ]
    if rule.get("scope") not in _SCOPES:
        causes.append(not_supported(f"{path}.scope", rule.get("scope"), _SCOPES))
    return causes


def _validate_name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    problems = subdomain_problems(name)
    if problems:
        return [invalid(path, name, ",".join(problems))]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _validate_review_versions(versions: list[str], path: str) -> list[FieldError]:
    known = ", ".join(REVIEW_VERSIONS)
    if not versions:
        return [required(path, f"must specify one of {known}")]
    causes: list[FieldError] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            causes.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        causes += [invalid(f"{path}[{index}]", version, problem) for problem in service_label_problems(version)]
    if not set(versions) & set(REVIEW_VERSIONS):
        causes.append(invalid(path, versions, f"must include at least one of {known}"))
    return causes


def _validate_client(config: Object, path: str) -> list[FieldError]:
    """What is wrong with a `clientConfig`, defaults filled in."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        return _validate_url(url, f"{path}.url")
    return _validate_service(service or {}, f"{path}.service")


def _validate_url(url: str, path: str) -> list[FieldError]:
    if urlsplit(url).scheme != "https":
        return [invalid(path, url, "'https' is the only allowed URL scheme; desired format: https://host[/path]")]
    return []


def _validate_service(service: Object, path: str) -> list[FieldError]:
    causes = [required(f"{path}.{field}") for field in ("name", "namespace") if not service.get(field)]
    port = service.get("port")
    if not isinstance(port, int) or not 0 < port < 65536:
        causes.append(invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive"))
    return causes


def _validate_conditions(conditions: list[Object], path: str) -> list[FieldError]:
    if len(conditions) > _MAX_CONDITIONS:
        return [too_many(path, len(conditions), _MAX_CONDITIONS)]
    causes: list[FieldError] = []
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        at, name, expression = f"{path}[{index}]", condition.get("name") or "", condition.get("expression") or ""
        if not expression.strip():
            causes.append(required(f"{at}.expression"))
        else:
            causes += _validate_expression(expression, f"{at}.expression")
        if not name:
            causes.append(required(f"{at}.name"))
        causes += [invalid(f"{at}.name", name, problem) for problem in qualified_name_problems(name) if name]
        if name and name in names:
            causes.append(duplicate(f"{at}.name", name))
        names.add(name)
    return causes


def _validate_expression(expression: str, path: str) -> list[FieldError]:
    try:
        Condition.compile("", expression)
    except ValueError as error:
        return [invalid(path, expression, str(error))]
    return []
