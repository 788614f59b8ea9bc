"""The aggregation controller: fills ClusterRoles with the rules of those that they select by labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import structlog

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.store import Lister
from trainer.kube.client import Client
from trainer.kube.controller.controller import Controller
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey, labels_of, name_of, resource_version_of
from trainer.kube.resource import CLUSTER_ROLES
from trainer.kube.selectors import LabelSelector

log = structlog.get_logger(__name__)

FIELD_MANAGER: Final = "clusterrole-aggregation-controller"
_AGGREGATED: Final = "aggregated"
_ALL: Final = "all"


class AggregationReconciler:
    """Writes the rules of ClusterRoles that have an `aggregationRule`."""

    def __init__(self, client: Client, roles: Lister) -> None:
        self._client = client
        self._roles = roles

    async def reconcile(self, key: ObjectKey) -> None:
        """Give the role the rules that it shall have, unless it has them.

        Raises:
            ConflictError: the role has changed; the controller tries again.
        """
        role = self._roles.get(key)
        if role is None or not role.get("aggregationRule"):
            return
        rules = aggregated_rules(role, self._roles.list())
        if rules == (role.get("rules") or []):
            return
        wanted = {
            "apiVersion": CLUSTER_ROLES.api_version,
            "kind": CLUSTER_ROLES.kind,
            # Without the version a role that has just been deleted would come back.
            "metadata": {"name": key.name, "resourceVersion": resource_version_of(role)},
            "rules": rules,
        }
        await self._client.apply(CLUSTER_ROLES, wanted, field_manager=FIELD_MANAGER, force=True)
        log.info("aggregated cluster role", cluster_role=key.name, rules=len(rules))


def aggregated_rules(role: Object, roles: Iterable[Object]) -> list[Any]:
    """The rules of all other roles that a role selects, each once, by selector and name of the role."""
    others = sorted((other for other in roles if name_of(other) != name_of(role)), key=name_of)
    found: list[Any] = []
    for entry in role["aggregationRule"].get("clusterRoleSelectors") or ():
        selector = LabelSelector.from_object(entry)
        for other in others:
            if selector.matches(labels_of(other)):
                found += [rule for rule in other.get("rules") or () if rule not in found]
    return found


def register(manager: Manager) -> None:
    """Have the manager run the aggregation controller."""
    informer = manager.informer(CLUSTER_ROLES)
    informer.add_index(_AGGREGATED, lambda role: (_ALL,) if role.get("aggregationRule") else ())
    lister = informer.lister

    def aggregating(_: CachedObject) -> Iterable[ObjectKey]:
        return lister.keys_by_index(_AGGREGATED, _ALL)

    reconciler = AggregationReconciler(manager.client, lister)
    Controller("cluster-role-aggregation", manager, reconciler.reconcile).watches(CLUSTER_ROLES, aggregating)
