"""The YAML of objects, as their users read it."""

from __future__ import annotations

from typing import Final

import msgspec

from trainer.kube.client import Client
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, ObjectKey, metadata_of
from trainer.kube.resource import Resource
from trainer.kubernetes_yaml import dump
from trainer_dashboard.access.parties import Party
from trainer_dashboard.requests.rejected import RejectedError

LARGEST: Final = 256 * 1024
"""Bytes of JSON of an object whose YAML is shown, which takes half a second to write; a usual TrainJob has some KiB."""


async def manifest(client: Client, party: Party, resource: Resource, key: ObjectKey) -> str:
    """An object as the cluster stores it, without its field managers.

    Raises:
        KubeError: the API server refuses to show it.
        RejectedError: it is too large.
    """
    obj = await client.get(resource, key.name, key.namespace)
    metadata_of(obj).pop("managedFields", None)
    return await yaml_of(obj, party)


async def yaml_of(obj: Object, party: Party) -> str:
    """The YAML of an object.

    Raises:
        RejectedError: it is too large.
    """
    require_size(LARGEST, obj)
    return await party.compute(dump, obj)


def require_size(largest: int, *objects: Object) -> None:
    """Refuse objects that would keep a processor busy.

    Raises:
        RejectedError: they are larger together.
    """
    size = sum(len(msgspec.json.encode(obj)) for obj in objects)
    if size > largest:
        text = (
            f"has {size} bytes, more than the {largest} that a page shows: use kubectl get -o yaml and trainer render"
        )
        raise RejectedError(FieldError("", text))
