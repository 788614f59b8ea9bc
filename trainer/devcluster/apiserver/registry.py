"""Registry: which resources the server serves at the moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.devcluster.apiserver.storage import Partition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainer.devcluster.apiserver.definitions import ResourceDefinition


class Registry:
    """The served definitions; custom resources come and go while the server runs."""

    def __init__(self, definitions: Iterable[ResourceDefinition] = ()) -> None:
        self._definitions: dict[tuple[str, str, str], ResourceDefinition] = {}
        self.version = 0
        """Counts changes: discovery and OpenAPI documents of one version may be kept."""
        for definition in definitions:
            self.add(definition)

    @property
    def definitions(self) -> list[ResourceDefinition]:
        """All of them, in the order in which they were added."""
        return list(self._definitions.values())

    def add(self, definition: ResourceDefinition) -> None:
        """Serve a definition; replaces the one of the same group, version and plural."""
        resource = definition.resource
        self._definitions[resource.group, resource.version, resource.plural] = definition
        self.version += 1

    def remove(self, definition: ResourceDefinition) -> None:
        """Stop serving a definition."""
        resource = definition.resource
        self._definitions.pop((resource.group, resource.version, resource.plural), None)
        self.version += 1

    def find(self, group: str, version: str, plural: str) -> ResourceDefinition | None:
        """The definition behind a URL."""
        return self._definitions.get((group, version, plural))

    def serves_group_version(self, group: str, version: str) -> bool:
        """Whether any resource of the group and version is served."""
        return any(known[:2] == (group, version) for known in self._definitions)

    def partitions(self) -> dict[Partition, ResourceDefinition]:
        """One definition for every partition of the storage."""
        return {
            Partition.of(definition.resource): definition
            for definition in self._definitions.values()
            if definition.stored
        }
