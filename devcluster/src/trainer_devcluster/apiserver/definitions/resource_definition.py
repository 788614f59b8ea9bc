"""Definitions: the one description of a served resource, for built-in kinds and custom resources alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer_devcluster.apiserver.objects.built_in_types import built_in_type
from trainer_devcluster.apiserver.objects.names import NameRule
from trainer_devcluster.apiserver.objects.value_types import UNTYPED, SchemaTyping

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource
    from trainer_devcluster.apiserver.definitions.strategy import Strategy
    from trainer_devcluster.apiserver.definitions.versions import Versions
    from trainer_devcluster.apiserver.schema.structural import StructuralSchema

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
    """What clients are warned of with every request; "" when the version is not deprecated."""

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
