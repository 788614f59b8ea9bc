"""What writes need to be allowed beyond the verb of their request.

A patch that creates its object needs `create`. Nobody gives away by a role or a binding what they do not have
themselves, unless they may `escalate` the role or `bind` it (Kubernetes documentation, "Using RBAC Authorization",
privilege escalation prevention and bootstrapping).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from trainer.kube.objects import Object, metadata_of, name_of
from trainer.kube.resource import CLUSTER_ROLES, ROLES, Resource
from trainer_devcluster.apiserver.authentication.user import MASTERS, User
from trainer_devcluster.apiserver.authorization.authorizer import Authorizer, forbidden
from trainer_devcluster.apiserver.authorization.rbac import role_key
from trainer_devcluster.apiserver.authorization.rules import (
    EVERYTHING,
    AccessCheck,
    PolicyRule,
    compacted,
    describe,
    quoted,
    rules_in,
    uncovered,
)
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.storage.storage import Partition, Storage
from trainer_devcluster.apiserver.wire import answers
from trainer_kube_testing.api_semantics import statuses

_BOOKKEEPING: Final = frozenset({"finalizers", "managedFields", "ownerReferences", "resourceVersion", "generation"})
"""Metadata that the garbage collector has to be able to change in whatever role."""


@dataclass(frozen=True, slots=True)
class WriteGuard:
    """Checks one write."""

    authorizer: Authorizer
    storage: Storage
    user: User
    target: Target

    def check(self, new: Object, live: Object | None) -> None:
        """Refuse what the user may not make of the object.

        Args:
            new: as it would be stored.
            live: as it is stored; None for a creation.

        Raises:
            ApiError: 403; 404, the role of a binding does not exist.
        """
        if MASTERS in self.user.groups:
            return
        if live is None and self.target.verb == "patch":
            self._require("create", self.target.definition.resource, self.target.name)
        if self.target.definition.resource.group != ROLES.group:
            return
        if live is not None and _without_bookkeeping(new) == _without_bookkeeping(live):
            return
        if "roleRef" in new:
            self._check_binding(new)
        else:
            self._check_role(new, live)

    def _check_role(self, new: Object, live: Object | None) -> None:
        resource = self.target.definition.resource
        if self._may("escalate", resource, self.target.name):
            return
        self._check_held(rules_in(new), name_of(new))
        aggregates = "aggregationRule" in new or (live is not None and "aggregationRule" in live)
        if aggregates and uncovered(self._held(), EVERYTHING):
            message = "must have cluster-admin privileges to use the aggregationRule"
            raise answers.forbidden(resource, name_of(new), message)

    def _check_binding(self, new: Object) -> None:
        resource = ROLES if new["roleRef"].get("kind") == ROLES.kind else CLUSTER_ROLES
        key = role_key(new)
        if self._may("bind", resource, key.name):
            return
        role = self.storage.get(Partition.of(resource), key)
        if role is None:
            raise statuses.not_found(resource, key.name)
        self._check_held(rules_in(role), name_of(new))

    def _check_held(self, rules: Iterable[PolicyRule], name: str) -> None:
        held = self.authorizer.rules_of(self.user, self.target.namespace or "")
        missing = uncovered(held.rules, rules)
        if not missing:
            return
        listed = "\n".join(sorted({describe(rule) for rule in compacted(missing)}))
        message = (
            f'user "{self.user.name}" (groups={quoted(self.user.groups)}) is attempting to grant RBAC permissions not '
            f"currently held:\n{listed}"
        )
        if held.problems:
            message += f"; resolution errors: [{' '.join(held.problems)}]"
        raise answers.forbidden(self.target.definition.resource, name, message)

    def _held(self) -> tuple[PolicyRule, ...]:
        return self.authorizer.rules_of(self.user, self.target.namespace or "").rules

    def _may(self, verb: str, resource: Resource, name: str) -> bool:
        return self.authorizer.authorize(self._attributes(verb, resource, name)).allowed

    def _require(self, verb: str, resource: Resource, name: str) -> None:
        attributes = self._attributes(verb, resource, name)
        decision = self.authorizer.authorize(attributes)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)

    def _attributes(self, verb: str, resource: Resource, name: str) -> AccessCheck:
        namespace = self.target.namespace or ""
        return AccessCheck(
            self.user, verb, resource.group, resource.version, resource.plural, namespace=namespace, name=name
        )


def _without_bookkeeping(obj: Object) -> Object:
    kept = {name: value for name, value in metadata_of(obj).items() if name not in _BOOKKEEPING}
    return {**obj, "metadata": kept}
