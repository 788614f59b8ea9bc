"""What is wrong with the rules of webhooks, as the API server's validation words it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.kube.field_errors import invalid, not_supported, required

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_ALL: Final = "*"
_OPERATIONS: Final = (_ALL, "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = (_ALL, "Cluster", "Namespaced")
_LISTS: Final = {"operations": "operations", "apiGroups": "API groups", "apiVersions": "API versions"}


def validate_rule(rule: Object, path: str) -> list[FieldError]:
    """What is wrong with one entry of `rules`."""
    causes: list[FieldError] = []
    for field, described in _LISTS.items():
        values = rule.get(field) or []
        if not values:
            causes.append(required(f"{path}.{field}"))
        elif len(values) > 1 and _ALL in values:
            causes.append(invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {described}"))
    causes += [
        not_supported(f"{path}.operations[{index}]", operation, _OPERATIONS)
        for index, operation in enumerate(rule.get("operations") or ())
        if operation not in _OPERATIONS
    ]
    versions = enumerate(rule.get("apiVersions") or ())
    causes += [required(f"{path}.apiVersions[{index}]") for index, version in versions if not version]
    causes += _validate_resources(rule.get("resources") or [], f"{path}.resources")
    if rule.get("scope") not in _SCOPES:
        causes.append(not_supported(f"{path}.scope", rule.get("scope"), _SCOPES))
    return causes


def _validate_resources(resources: list[str], path: str) -> list[FieldError]:
    if not resources:
        return [required(path)]
    causes: list[FieldError] = []
    with_all_subresources: set[str] = set()
    of_all_resources: set[str] = set()
    for index, text in enumerate(resources):
        if not text:
            causes.append(required(f"{path}[{index}]"))
        resource, slash, subresource = text.partition("/")
        if not slash:
            continue
        if resource in with_all_subresources:
            causes.append(_covered(f"{path}[{index}]", text, f"{resource}/*"))
        if subresource in of_all_resources:
            causes.append(_covered(f"{path}[{index}]", text, f"*/{subresource}"))
        if subresource == _ALL:
            with_all_subresources.add(resource)
        if resource == _ALL:
            of_all_resources.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        causes.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if _ALL in resources and any("/" not in text and text != _ALL for text in resources):
        detail = "if '*' is present, must not specify other resources without subresources"
        causes.append(invalid(path, resources, detail))
    return causes


def _covered(path: str, text: str, wildcard: str) -> FieldError:
    return invalid(path, text, f"if '{wildcard}' is present, must not specify {text}")
