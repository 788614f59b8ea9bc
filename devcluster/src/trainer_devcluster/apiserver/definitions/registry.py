"""Registry: which resources the server serves at the moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer_devcluster.apiserver.storage.storage import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition


class Registry:
    """The served definitions; custom resources come and go while the server runs."""

    def __init__(
        self,
        definitions: Iterable[ResourceDefinition] = (),
        *,
        when_changed: Callable[[Partition], None] | None = None,
    ) -> None:
        """Serve some definitions.

        Args:
            definitions: to begin with.
            when_changed: called with the partition of every definition that is added or removed later.
        """
        self._when_changed: Callable[[Partition], None] | None = None
        self._definitions: dict[tuple[str, str, str], ResourceDefinition] = {}
        self.version = 0
        """Counts changes: discovery and OpenAPI documents of one version may be kept."""
        for definition in definitions:
            self.add(definition)
        self._when_changed = when_changed

    @property
    def definitions(self) -> list[ResourceDefinition]:
        """All of them, in the order in which they were added."""
        return list(self._definitions.values())

    def add(self, definition: ResourceDefinition) -> None:
        """Serve a definition; replaces the one of the same group, version and plural."""
        resource = definition.resource
        self._definitions[resource.group, resource.version, resource.plural] = definition
        self._change(definition)

    def remove(self, definition: ResourceDefinition) -> None:
        """Stop serving a definition."""
        resource = definition.resource
        self._definitions.pop((resource.group, resource.version, resource.plural), None)
        self._change(definition)

    def _change(self, definition: ResourceDefinition) -> None:
        self.version += 1
        if self._when_changed is not None:
            self._when_changed(Partition.of(definition.resource))

    def find(self, group: str, version: str, plural: str) -> ResourceDefinition | None:
        """The definition behind a URL."""
        return self._definitions.get((group, version, plural))

    def serves_group_version(self, group: str, version: str) -> bool:
        """Whether any resource of the group and version is served."""
        return any(known[:2] == (group, version) for known in self._definitions)
