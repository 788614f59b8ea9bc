"""A cluster that does not change, for tests of plugins and for work on files; it answers as the manager's caches do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.store import CONTROLLER_UID, IndexFunction, controller_uids
from trainer.kube.objects import Object, ObjectKey, controller_of, key_of, labels_of, namespace_of
from trainer.kube.resource import CONFIG_MAPS, PODS, SECRETS, Resource
from trainer.workloads import JOBSETS


class StaticReader:
    """A `Reader` on the objects that it was given; `add` puts or replaces one.

    Attributes:
        selected: kinds of which only some objects are cached.
        refusals: answers to dry runs that were refused, by kind and name of the dry run.

    Args:
        objects: what there is.
        indexes: by what `keys` finds them. Defaults to nothing.
        unserved: kinds whose CRD is not installed. Defaults to none.
        resources: kinds of which `children` may find objects, besides JobSets, ConfigMaps, Secrets and pods. Defaults
            to none.
    """

    def __init__(
        self,
        *objects: Object,
        indexes: Mapping[str, IndexFunction] | None = None,
        unserved: Collection[Resource] = (),
        resources: Collection[Resource] = (),
    ) -> None:
        self.unserved = set(unserved)
        self.selected: set[Resource] = set()
        self.refusals: dict[tuple[Resource, str], str] = {}
        self._indexes: dict[str, IndexFunction] = {CONTROLLER_UID: controller_uids, **(indexes or {})}
        self._resources = {resource.kind: resource for resource in (JOBSETS, CONFIG_MAPS, SECRETS, PODS, *resources)}
        self._objects: dict[tuple[str, ObjectKey], Object] = {}
        self._found: dict[tuple[str, str], dict[str, set[ObjectKey]]] = {}
        """By kind and index, what `keys` finds; made when somebody asks."""
        for obj in objects:
            self.add(obj)

    def add(self, obj: Object) -> None:
        """Put an object, or replace the one of the same kind, namespace and name."""
        self._objects[obj["kind"], key_of(obj)] = obj
        self._found.clear()

    def get(self, resource: Resource, key: ObjectKey) -> Object | None:
        """See `Reader.get`."""
        return self._objects.get((resource.kind, key))

    def list(self, resource: Resource, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """See `Reader.list`."""
        return [
            obj
            for (kind, _), obj in self._objects.items()
            if kind == resource.kind and namespace_of(obj) == namespace and labels.items() <= labels_of(obj).items()
        ]

    def keys(self, resource: Resource, index: str, value: str) -> set[ObjectKey]:
        """See `Reader.keys`; an index that it was not given finds nothing."""
        found = self._found.get((resource.kind, index))
        if found is None:
            found = self._found[resource.kind, index] = self._indexed(resource.kind, index)
        return set(found.get(value, ()))

    def _indexed(self, kind: str, index: str) -> dict[str, set[ObjectKey]]:
        found: dict[str, set[ObjectKey]] = {}
        function = self._indexes.get(index)
        if function is None:
            return found
        for obj in (obj for (each, _), obj in self._objects.items() if each == kind):
            for value in function(CachedObject.of(obj)):
                found.setdefault(value, set()).add(key_of(obj))
        return found

    def serves(self, resource: Resource) -> bool:
        """See `Reader.serves`."""
        return resource not in self.unserved

    def refusal(self, resource: Resource, dry_run: str) -> str:
        """See `Reader.refusal`."""
        return self.refusals.get((resource, dry_run), "")

    def selects(self, resource: Resource, obj: Object) -> bool:  # noqa: ARG002 - the protocol's signature
        """See `Reader.selects`: whatever is added can be read."""
        return True

    def holds_all(self, resource: Resource) -> bool:
        """See `Reader.holds_all`."""
        return resource not in self.selected

    def children(self, owner_uid: str) -> Iterator[tuple[Resource, Object]]:
        """See `Reader.children`."""
        for (kind, _), obj in self._objects.items():
            if (controller_of(obj) or {}).get("uid") == owner_uid:
                yield self._resources[kind], obj
