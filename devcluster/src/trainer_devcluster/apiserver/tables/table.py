"""Tables: the form in which `kubectl get` asks for objects (Kubernetes API concepts, "Tables fetches")."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from trainer.kube.objects import metadata_of
from trainer_devcluster.apiserver.tables.printers import printer_for, row_conditions

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition

_META_GROUP = "meta.k8s.io"


class IncludeObject(StrEnum):
    """What a row carries of its object (query parameter `includeObject`)."""

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
    else:
        row["object"] = None if include_object is IncludeObject.NONE else _partial(obj, version)
    return row


def _partial(obj: Object, version: str) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": f"{_META_GROUP}/{version}", "metadata": metadata_of(obj)}
