"""Tables: the form in which `kubectl get` asks for objects (Kubernetes API concepts, "Tables fetches").

Source: the server-side printers of Kubernetes. Column descriptions come from the API documentation in
`builtin_types.json.gz`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, TypeAlias

from trainer.kube.objects import Object, metadata_of, name_of
from trainer_devcluster.apiserver.definitions.resource_definition import Column, ResourceDefinition
from trainer_devcluster.apiserver.objects import durations
from trainer_devcluster.apiserver.objects.built_in_types import object_meta
from trainer_devcluster.apiserver.tables.json_path import JSONPath
from trainer_devcluster.apiserver.tables.pod_rows import pod_conditions
from trainer_devcluster.apiserver.tables.rows import PRINTED_KINDS, PrintedColumn

Cells: TypeAlias = Callable[["Object", "datetime"], list[Any]]

DEFAULT_COLUMN: Final = Column("Age", "date", ".metadata.creationTimestamp")
"""The column of custom resources whose definition has none."""
_DEFAULT_COLUMNS: Final = (PrintedColumn("Name", format="name"), PrintedColumn("Age"))


@dataclass(frozen=True, slots=True)
class Printer:
    """The table of one kind."""

    columns: list[Object]
    """TableColumnDefinition objects; shared, never change them."""
    cells: Cells
    """One value per column for an object at a time."""


def printer_for(definition: ResourceDefinition) -> Printer:
    """The printer of a resource: its own columns if it is custom, else those of the kind, else name and age."""
    if definition.columns is not None:
        return _custom_printer(definition.columns)
    api_version = definition.resource.api_version
    return _built_in_printer(f"{api_version}/{definition.resource.kind}")


def row_conditions(obj: Object, definition: ResourceDefinition) -> list[Object]:
    """TableRowCondition objects of a row; only finished pods have one."""
    resource = definition.resource
    return pod_conditions(obj) if (resource.group, resource.kind) == ("", "Pod") else []


@functools.cache
def _built_in_printer(kind: str) -> Printer:
    columns, cells = PRINTED_KINDS.get(kind, (_DEFAULT_COLUMNS, _default_cells))
    return Printer([column.to_object() for column in columns], cells)


def _default_cells(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), durations.age(metadata_of(obj).get("creationTimestamp"), now)]


@functools.lru_cache(maxsize=256)
def _custom_printer(columns: tuple[Column, ...]) -> Printer:
    name = object_meta().field("name")
    described = str(name.schema.get("description", "")) if name is not None else ""
    first = {"name": "Name", "type": "string", "format": "name", "description": described, "priority": 0}
    definitions = [first, *map(_custom_column, columns)]
    values = [_custom_cell(column) for column in columns]
    return Printer(definitions, lambda obj, now: [name_of(obj), *(value(obj, now) for value in values)])


def _custom_column(column: Column) -> Object:
    described = column.description or f"Custom resource definition column (in JSONPath format): {column.json_path}"
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": described,
        "priority": column.priority,
    }


def _custom_cell(column: Column) -> Callable[[Object, datetime], Any]:
    path = JSONPath.parse(column.json_path)

    def cell(obj: Object, now: datetime) -> Any:
        found = path.find(obj)
        return _converted(found[0], column.type, now) if found else None

    return cell


def _converted(value: Any, column_type: str, now: datetime) -> Any:
    if column_type == "string":
        return _text(value)
    if column_type == "date":
        return durations.age(value, now) if isinstance(value, str) else None
    if column_type == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if column_type == "integer" else value


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


_META_GROUP = "meta.k8s.io"


class IncludeObject(StrEnum):
    """The part of the object in a row (query parameter `includeObject`)."""

    NONE = "None"
    METADATA = "Metadata"
    """PartialObjectMetadata; what the server does by default."""
    OBJECT = "Object"


def table(
    objects: Iterable[Object],
    definition: ResourceDefinition,
    *,
    include_object: IncludeObject = IncludeObject.METADATA,
    resource_version: str,
    continue_: str = "",
    remaining_item_count: int | None = None,
    now: datetime,
    version: str = "v1",
) -> Object:
    """The Table of a list, or of one object.

    Args:
        objects: with apiVersion and kind; rows refer to their metadata (or to themselves), so do not change them.
        definition: their resource.
        include_object: what a row carries of its object.
        resource_version: of the list, or of the one object.
        continue_: of a page that is not the last.
        remaining_item_count: of a page that is not the last, when it is known.
        now: for ages; aware.
        version: of meta.k8s.io, as negotiated: v1 or v1beta1.
    """
    printer = printer_for(definition)
    metadata: dict[str, Any] = {"resourceVersion": resource_version}
    if continue_:
        metadata["continue"] = continue_
    if remaining_item_count is not None:
        metadata["remainingItemCount"] = remaining_item_count
    return {
        "kind": "Table",
        "apiVersion": f"{_META_GROUP}/{version}",
        "metadata": metadata,
        "columnDefinitions": printer.columns,
        "rows": [
            _row(obj, printer.cells(obj, now), row_conditions(obj, definition), include_object, version)
            for obj in objects
        ],
    }


def _row(
    obj: Object, cells: list[Any], conditions: list[Object], include_object: IncludeObject, version: str
) -> Object:
    row: dict[str, Any] = {"cells": cells}
    if conditions:
        row["conditions"] = conditions
    if include_object is IncludeObject.OBJECT:
        row["object"] = obj
    elif include_object is IncludeObject.NONE:
        row["object"] = None
    else:
        kind = {"kind": "PartialObjectMetadata", "apiVersion": f"{_META_GROUP}/{version}"}
        row["object"] = {**kind, "metadata": metadata_of(obj)}
    return row
