"""Read access to the cluster for plugins and the deployer, from the informers' caches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from trainer.kube.cache.store import CONTROLLER_UID
from trainer.kube.selectors import LabelSelector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trainer.kube.cache.store import Lister
    from trainer.kube.objects import Object, ObjectKey
    from trainer.kube.resource import Resource


class Reader(Protocol):
    """What may be asked about the cluster; what this process has written itself shows at once."""

    def get(self, resource: Resource, key: ObjectKey) -> Object | None:
        """One object, or None when the cache does not have it (yet)."""

    def list(self, resource: Resource, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """The objects of a namespace that have all these labels."""

    def children(self, owner_uid: str) -> Iterable[tuple[Resource, Object]]:
        """All objects whose controller has this uid, whatever their kind."""


class CacheReader:
    """Reads from listers that are attached while the controllers are set up."""

    def __init__(self) -> None:
        self._listers: dict[Resource, Lister] = {}

    def attach(self, resource: Resource, lister: Lister) -> None:
        """Answer questions about `resource` from `lister`."""
        self._listers[resource] = lister

    def get(self, resource: Resource, key: ObjectKey) -> Object | None:
        """See `Reader.get`."""
        return self._lister(resource).get(key)

    def list(self, resource: Resource, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """See `Reader.list`."""
        return self._lister(resource).list(namespace, LabelSelector.from_object({"matchLabels": labels}))

    def children(self, owner_uid: str) -> Iterator[tuple[Resource, Object]]:
        """See `Reader.children`."""
        for resource, lister in self._listers.items():
            for child in lister.by_index(CONTROLLER_UID, owner_uid):
                yield resource, child

    def _lister(self, resource: Resource) -> Lister:
        if resource not in self._listers:
            raise LookupError(
                f"{resource.qualified_name} are not cached: a plugin that reads or builds them must watch them"
            )
        return self._listers[resource]
