"""The argument of a plugin's constructor: read access to the caches of the cluster, and its configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol, TypeVar

from trainer.api.model import ApiModel
from trainer.kube.cache.informer import Informer
from trainer.kube.cache.store import CONTROLLER_UID, Lister
from trainer.kube.objects import Object, ObjectKey, key_of
from trainer.kube.resource import Resource
from trainer.kube.selection import Matcher
from trainer.kube.selectors import LabelSelector

_M = TypeVar("_M", bound=ApiModel)


class PluginContext:
    """The cached cluster and the plugin's own configuration.

    Args:
        reader: answers only about resources that the plugin watches, and only once the manager runs; it is for hooks,
            not for constructors.
        configuration: `plugins.configuration[<name>]` of the manager's configuration. Defaults to an empty mapping.
    """

    def __init__(self, reader: Reader, configuration: Mapping[str, object] | None = None) -> None:
        self.reader = reader
        self._configuration = dict(configuration or {})
        self._was_read = False

    @property
    def configuration(self) -> Mapping[str, object]:
        """What the platform engineer has written for this plugin, unchecked: decoded YAML.

        A plugin that does not read it takes no configuration, so that any is refused. To refuse it, raise
        `InvalidObjectError` with errors at paths within the configuration, or any other exception with a message.
        """
        self._was_read = True
        return self._configuration

    def settings(self, model: type[_M]) -> _M:
        """The configuration as a model; unknown fields are refused.

        Raises:
            InvalidObjectError: it does not fit; pass it on, and the manager does not start but names plugin and field.
        """
        return model.from_object(self.configuration, strict=True)

    @property
    def is_ignored(self) -> bool:
        """Whether there is a configuration that was never read."""
        return bool(self._configuration) and not self._was_read


class Reader(Protocol):
    """Reads the cached cluster; own writes of this process are visible at once."""

    def get(self, resource: Resource, key: ObjectKey) -> Object | None:
        """One object, or None when the cache does not have it (yet)."""

    def list(self, resource: Resource, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """The objects of a namespace that have all these labels."""

    def keys(self, resource: Resource, index: str, value: str) -> AbstractSet[ObjectKey]:
        """Namespace and name of the objects under `value` in one of `Watch.indexes`; cheap, for nothing is decoded."""

    def children(self, owner_uid: str) -> Iterable[tuple[Resource, Object]]:
        """All objects whose controller has this uid, whatever their kind."""

    def serves(self, resource: Resource) -> bool:
        """Whether the kind can be read: false for one of an optional watch that the API server does not serve (yet)."""

    def refusal(self, resource: Resource, dry_run: str) -> str:
        """The answer to one of `Watch.dry_runs`: empty if the API server would create it, or has not answered yet."""

    def selects(self, resource: Resource, obj: Object) -> bool:
        """Whether such an object can be read once it exists: false where its labels or fields are not those cached."""

    def holds_all(self, resource: Resource) -> bool:
        """Whether every object of the kind can be read: false where only those of some labels or fields are cached."""


class CacheReader:
    """Reads from informers that are attached while the controllers are set up.

    Several plugins may watch parts of one resource: what any of them watches can be read. While an optional kind is not
    served there is nothing of it.
    """

    def __init__(self) -> None:
        self._informers: dict[Resource, list[Informer]] = {}
        self._listers: dict[Resource, list[Lister]] = {}
        self._indexes: dict[tuple[Resource, str], list[Lister]] = {}
        self.refusals: dict[tuple[Resource, str], str] = {}
        """The answers to dry runs that were refused, by kind and name of the dry run."""

    def attach(self, informer: Informer, indexes: Iterable[str] = ()) -> None:
        """Read its resource from this informer too, and these of its indexes."""
        informers = self._informers.setdefault(informer.resource, [])
        lister = informer.lister
        if informer not in informers:
            informers.append(informer)
            self._listers.setdefault(informer.resource, []).append(lister)
            indexes = (*indexes, CONTROLLER_UID)
        for index in indexes:
            self._indexes.setdefault((informer.resource, index), []).append(lister)

    def get(self, resource: Resource, key: ObjectKey) -> Object | None:
        """See `Reader.get`."""
        for lister in self._of(resource):
            obj = lister.get(key)
            if obj is not None:
                return obj
        return None

    def list(self, resource: Resource, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """See `Reader.list`."""
        selector = LabelSelector.from_object({"matchLabels": labels})
        found = [obj for lister in self._of(resource) for obj in lister.list(namespace, selector)]
        return list({key_of(obj): obj for obj in found}.values())

    def keys(self, resource: Resource, index: str, value: str) -> AbstractSet[ObjectKey]:
        """See `Reader.keys`."""
        listers = self._indexes.get((resource, index))
        if listers is None:
            raise LookupError(f"{resource.qualified_name} have no index {index}: the plugin's Watch must declare it")
        found: set[ObjectKey] = set()
        for lister in listers:
            found |= lister.keys_by_index(index, value)
        return found

    def children(self, owner_uid: str) -> Iterator[tuple[Resource, Object]]:
        """See `Reader.children`."""
        for resource, listers in self._listers.items():
            seen: set[ObjectKey] = set()
            for lister in listers:
                for key in lister.keys_by_index(CONTROLLER_UID, owner_uid) - seen:
                    seen.add(key)
                    child = lister.get(key)
                    if child is not None:
                        yield resource, child

    def serves(self, resource: Resource) -> bool:
        """See `Reader.serves`."""
        informers = self._informers.get(resource, ())
        return bool(informers) and all(informer.is_served for informer in informers)

    def refusal(self, resource: Resource, dry_run: str) -> str:
        """See `Reader.refusal`."""
        return self.refusals.get((resource, dry_run), "")

    def selects(self, resource: Resource, obj: Object) -> bool:
        """See `Reader.selects`."""
        return any(Matcher(informer.selection).matches(obj) for informer in self._informers.get(resource, ()))

    def holds_all(self, resource: Resource) -> bool:
        """See `Reader.holds_all`."""
        selections = [informer.selection for informer in self._informers.get(resource, ())]
        return any(not (selection.label_selector or selection.field_selector) for selection in selections)

    def _of(self, resource: Resource) -> Sequence[Lister]:
        listers = self._listers.get(resource)
        if listers is None:
            raise LookupError(
                f"{resource.qualified_name} are not cached: a plugin that reads or builds them must watch them"
            )
        return listers
