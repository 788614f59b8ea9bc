"""Definitions: the one description of a served resource, and the registry of those that are served at the moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.strategy import Strategy
from trainer_devcluster.apiserver.definitions.versions import Versions
from trainer_devcluster.apiserver.objects.built_in_types import built_in_type
from trainer_devcluster.apiserver.objects.names import NameRule
from trainer_devcluster.apiserver.objects.value_types import UNTYPED, SchemaTyping
from trainer_devcluster.apiserver.schema.structural import StructuralSchema
from trainer_devcluster.apiserver.storage.storage import Partition

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column of a custom resource (`additionalPrinterColumns`)."""

    name: str
    type: str
    """string, integer, number, boolean or date."""
    json_path: str
    """kubectl's JSONPath dialect, without braces: `.spec.replicas`."""
    format: str = ""
    description: str = ""
    priority: int = 0
    """0 is always shown, greater values only in wide output."""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the scale subresource finds its numbers; simple dotted JSON paths such as `.spec.replicas`."""

    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str = ""


@dataclass(frozen=True, slots=True)
class ResourceDefinition:
    """One version of a resource as the server serves it."""

    resource: Resource
    strategy: Strategy
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    status_subresource: bool = False
    scale: ScalePaths | None = None
    subresources: tuple[str, ...] = ()
    """Subresources beyond status and scale, such as `log` and `binding`."""
    columns: tuple[Column, ...] | None = None
    """Printer columns of a custom resource; None for built-in kinds, which the printers know by kind."""
    schema: StructuralSchema | None = None
    """Schema of a custom resource; None for built-in kinds."""
    generation: bool = True
    """Whether metadata.generation is kept."""
    name_rule: NameRule = NameRule.SUBDOMAIN
    selectable_fields: tuple[str, ...] = ()
    """Field selector paths beyond metadata.name and metadata.namespace, such as `spec.mode`, of a custom resource or of
    a version that shows the objects of another one; those of other built-in kinds are in `fields`."""
    heavy: bool = False
    """Whether its objects take long to merge and validate, so that this is done beside the event loop."""
    stored: bool = True
    """Whether its objects are kept. Those of a review are answered by a handler of their own, which the dispatcher
    knows, and support nothing but `create`."""
    list_kind: str = ""
    """Kind of lists when it is not the kind followed by `List`."""

    versions: Versions | None = None
    """How stored objects are read and written in this version; None when all of them are in it."""
    deprecation: str = ""
    """The deprecation warning of every answer; "" when the version is not deprecated."""

    @property
    def is_custom(self) -> bool:
        """Whether a CustomResourceDefinition describes it."""
        return self.schema is not None

    @property
    def typing(self) -> SchemaTyping:
        """Types of its fields, and how its lists and maps are merged."""
        if self.schema is not None:
            return self.schema.typing
        return built_in_type(self.resource.api_version, self.resource.kind) or UNTYPED

    @property
    def collection_kind(self) -> str:
        """Kind of a list of its objects."""
        return self.list_kind or self.resource.list_kind


def as_requested(definition: ResourceDefinition, obj: Object) -> Object:
    """A stored object in the version of a definition; shared, never change it."""
    return obj if definition.versions is None else definition.versions.read(obj, definition.resource.api_version)


def as_stored(definition: ResourceDefinition, obj: Object) -> Object:
    """An object of a definition as it is stored."""
    return obj if definition.versions is None else definition.versions.convert(obj, definition.versions.storage)


class ResourceRegistry:
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
