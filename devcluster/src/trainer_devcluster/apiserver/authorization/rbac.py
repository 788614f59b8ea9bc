"""The RBAC authorizer: users may do what the roles that are bound to them allow, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer_devcluster.apiserver.authentication.user import MASTERS
from trainer_devcluster.apiserver.authorization.authorizer import Decision, Held
from trainer_devcluster.apiserver.authorization.grants import PARTITIONS, Grants, distinct

if TYPE_CHECKING:
    from anyio import Event

    from trainer_devcluster.apiserver.authentication.user import User
    from trainer_devcluster.apiserver.authorization.authorizer import Attributes
    from trainer_devcluster.apiserver.authorization.grants import Grant
    from trainer_devcluster.apiserver.storage.storage import Storage

_REMEMBERED: Final = 4096
"""So many users in namespaces are remembered with their grants; more are looked up again."""


class RbacAuthorizer:
    """Reads roles and bindings from the storage when one of them has changed, and remembers who has which.

    A decision takes microseconds with any number of bindings; the first one after a change takes as long as reading all
    of them.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._grants: Grants | None = None
        self._changes: tuple[Event, ...] = ()
        self._remembered: dict[tuple[str, tuple[str, ...], str], tuple[Grant, ...]] = {}

    def authorize(self, attributes: Attributes) -> Decision:
        """Whether the user may do that; members of `system:masters` may do everything."""
        if MASTERS in attributes.user.groups:
            return Decision(allowed=True)
        grants = self._grants_of(attributes.user, attributes.namespace)
        for grant in grants:
            for rule in grant.rules:
                if rule.allows(attributes):
                    return Decision(True, f"RBAC: allowed by {grant.source}")
        return Decision(False, _unresolved(distinct(grant.problem for grant in grants)))

    def rules_of(self, user: User, namespace: str) -> Held:
        """What the bindings give to the user in a namespace, or with "" everywhere."""
        grants = self._grants_of(user, namespace)
        rules = tuple(rule for grant in grants for rule in grant.rules)
        return Held(rules, distinct(grant.problem for grant in grants))

    def _grants_of(self, user: User, namespace: str) -> tuple[Grant, ...]:
        current = self._current()
        key = (user.name, user.groups, namespace)
        grants = self._remembered.get(key)
        if grants is None:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            grants = self._remembered[key] = current.of(user, namespace)
        return grants

    def _current(self) -> Grants:
        if self._grants is not None and not any(change.is_set() for change in self._changes):
            return self._grants
        self._changes = tuple(map(self._storage.changed, PARTITIONS))
        self._remembered.clear()
        self._grants = Grants(self._storage)
        return self._grants


def joined(problems: tuple[str, ...]) -> str:
    """Several problems as Kubernetes lists them; "" without any."""
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else ""


def _unresolved(problems: tuple[str, ...]) -> str:
    return f"RBAC: {joined(problems)}" if problems else ""
