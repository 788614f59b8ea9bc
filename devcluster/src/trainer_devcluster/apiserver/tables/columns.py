"""Columns of tables of built-in kinds, with the descriptions that the API documentation has for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trainer_devcluster.apiserver.objects.built_in_types import description_of, object_meta

if TYPE_CHECKING:
    from datetime import datetime

    from trainer.kube.objects import Object

Cells: TypeAlias = Callable[["Object", "datetime"], list[Any]]
"""Makes the cells of one row, as seen at a time."""


@dataclass(frozen=True, slots=True)
class PrintedColumn:
    """A column of a built-in kind."""

    name: str
    described_by: tuple[str, ...] = ()
    """apiVersion, kind and path of the field that documents it; Name and Age know theirs."""
    description: str = ""
    """Text of a column that is no field."""
    priority: int = 0
    """Greater than 0 for columns of wide output."""
    type: str = "string"
    format: str = ""

    def to_object(self) -> Object:
        """The TableColumnDefinition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or self._documentation(),
            "priority": self.priority,
        }

    def _documentation(self) -> str:
        metadata = {"Name": "name", "Age": "creationTimestamp", "Created At": "creationTimestamp"}
        if self.described_by:
            return description_of(*self.described_by)
        field = object_meta().field(metadata.get(self.name, ""))
        return str(field.schema.get("description") or "") if field is not None else ""


NAME: Final = PrintedColumn("Name", format="name")
AGE: Final = PrintedColumn("Age")
CREATED_AT: Final = PrintedColumn("Created At")
CONTAINERS: Final = PrintedColumn("Containers", description="Names of each container in the template.", priority=1)
IMAGES: Final = PrintedColumn("Images", description="Images referenced by each container in the template.", priority=1)


def column(name: str, *described_by: str, priority: int = 0, kind: str = "string") -> PrintedColumn:
    """A column that shows a field: apiVersion, kind and path of the field follow the name."""
    return PrintedColumn(name, described_by, priority=priority, type=kind)


def stated(name: str, description: str, priority: int = 0, kind: str = "string") -> PrintedColumn:
    """A column that shows no field, with its own description."""
    return PrintedColumn(name, description=description, priority=priority, type=kind)
