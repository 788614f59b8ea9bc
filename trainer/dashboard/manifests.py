"""The YAML of objects, as their users read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread

from trainer.kube.objects import metadata_of
from trainer.kubernetes_yaml import dump

if TYPE_CHECKING:
    from trainer.kube.client import Client
    from trainer.kube.objects import ObjectKey
    from trainer.kube.resource import Resource


async def manifest(client: Client, resource: Resource, key: ObjectKey) -> str:
    """An object as the cluster stores it, without its field managers.

    Raises:
        KubeError: the API server refuses to show it.
    """
    obj = await client.get(resource, key.name, key.namespace)
    metadata_of(obj).pop("managedFields", None)
    return await anyio.to_thread.run_sync(dump, obj)
