"""Roles and bindings as objects (rbac.authorization.k8s.io/v1); what they mean is the business of the authorizer."""

from __future__ import annotations

from typing import Any, Final

from trainer.kube.field_errors import FieldError, invalid, not_supported, required
from trainer.kube.names import subdomain_problems
from trainer.kube.objects import Object
from trainer.kube.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, Resource
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import fill, section, validate_label_selector
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems

_GROUP: Final = ROLES.group
_SUBJECTS: Final = ("Group", "ServiceAccount", "User")


class RoleStrategy(Strategy):
    """Role and ClusterRole."""

    def __init__(self, *, namespaced: bool) -> None:
        self._namespaced = namespaced

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Say that there are no rules when there are none."""
        obj.setdefault("rules", None)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check the rules, and what selects the roles that a ClusterRole takes its rules from."""
        causes: list[FieldError] = []
        for index, rule in enumerate(obj["rules"] or ()):
            causes += self._validate_rule(rule, f"rules[{index}]")
        if obj.get("aggregationRule") is not None:
            causes += _validate_aggregation(obj["aggregationRule"].get("clusterRoleSelectors") or [])
        return causes

    def _validate_rule(self, rule: Object, path: str) -> list[FieldError]:
        causes: list[FieldError] = []
        if not rule.get("verbs"):
            causes.append(required(f"{path}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs")
        if urls:
            if self._namespaced:
                detail = "namespaced rules cannot apply to non-resource URLs"
                causes.append(invalid(f"{path}.nonResourceURLs", urls, detail))
            if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                causes.append(invalid(f"{path}.nonResourceURLs", urls, detail))
            return causes
        if not rule.get("apiGroups"):
            causes.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            causes.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
        return causes


class BindingStrategy(Strategy):
    """RoleBinding and ClusterRoleBinding."""

    def __init__(self, *roles: str, namespaced: bool) -> None:
        """Make the strategy.

        Args:
            roles: kinds of roles that can be bound.
            namespaced: whether the binding counts in its namespace only.
        """
        self._roles = roles
        self._namespaced = namespaced

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Fill in the group of the role, and of users and groups."""
        fill(section(obj, "roleRef"), apiGroup=_GROUP)
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("Group", "User"):
                fill(subject, apiGroup=_GROUP)
            elif subject.get("apiGroup") == "":
                del subject["apiGroup"]

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check the role and the subjects."""
        reference = obj["roleRef"]
        causes: list[FieldError] = []
        if reference["apiGroup"] != _GROUP:
            causes.append(not_supported("roleRef.apiGroup", reference["apiGroup"], (_GROUP,)))
        if reference.get("kind") not in self._roles:
            causes.append(not_supported("roleRef.kind", reference.get("kind") or "", self._roles))
        name = reference.get("name") or ""
        if not name:
            causes.append(required("roleRef.name"))
        causes += [invalid("roleRef.name", name, problem) for problem in name_problems(name, NameRule.PATH_SEGMENT)]
        for index, subject in enumerate(obj.get("subjects") or ()):
            causes += self._validate_subject(subject, f"subjects[{index}]")
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the binding, and that it is still for the same role."""
        causes = self.validate(obj, context)
        reference = obj["roleRef"]
        if reference != old["roleRef"]:
            # As the server's own type of it is printed, whose fields have no names for JSON.
            fields = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}
            shown = {printed: reference.get(field) or "" for printed, field in fields.items()}
            causes.append(invalid("roleRef", shown, "cannot change roleRef"))
        return causes

    def _validate_subject(self, subject: Object, path: str) -> list[FieldError]:
        kind, name, group = (subject.get(field) or "" for field in ("kind", "name", "apiGroup"))
        causes = [] if name else [required(f"{path}.name")]
        if kind not in _SUBJECTS:
            return [*causes, not_supported(f"{path}.kind", kind, _SUBJECTS)]
        if kind != "ServiceAccount":
            return causes if group == _GROUP else [*causes, not_supported(f"{path}.apiGroup", group, (_GROUP,))]
        if name:
            causes += [invalid(f"{path}.name", name, problem) for problem in subdomain_problems(name)]
        if group:
            causes.append(not_supported(f"{path}.apiGroup", group, ("",)))
        if not self._namespaced and not subject.get("namespace"):
            causes.append(required(f"{path}.namespace"))
        return causes


def _validate_aggregation(selectors: list[Any]) -> list[FieldError]:
    path = "aggregationRule.clusterRoleSelectors"
    if not selectors:
        return [required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
    causes: list[FieldError] = []
    for index, selector in enumerate(selectors):
        causes += validate_label_selector(selector, f"{path}[{index}]")
    return causes


def _definition(resource: Resource, strategy: Strategy) -> ResourceDefinition:
    return ResourceDefinition(
        resource, strategy, singular=resource.kind.lower(), generation=False, name_rule=NameRule.PATH_SEGMENT
    )


ROLE = _definition(ROLES, RoleStrategy(namespaced=True))
ROLE_BINDING = _definition(ROLE_BINDINGS, BindingStrategy("ClusterRole", "Role", namespaced=True))
CLUSTER_ROLE = _definition(CLUSTER_ROLES, RoleStrategy(namespaced=False))
CLUSTER_ROLE_BINDING = _definition(CLUSTER_ROLE_BINDINGS, BindingStrategy("ClusterRole", namespaced=False))
