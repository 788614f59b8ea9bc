"""Reading the ConfigMaps, Secrets and claims that a pod refers to."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Protocol

from trainer.kube.errors import NotFoundError
from trainer.kube.resource import SECRETS

if TYPE_CHECKING:
    from trainer.kube.client import Client
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource


class ConfigReader(Protocol):
    """Looks up objects that pods refer to."""

    async def read(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """The object, or None if there is none."""


class ClientConfigReader:
    """Reads from the API server, uncached: a pod must see what was written before it was created."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """See `ConfigReader.read`."""
        try:
            return await self._client.get(resource, name, namespace)
        except NotFoundError:
            return None


def entries_of(resource: Resource, obj: Object) -> dict[str, bytes]:
    """The data of a ConfigMap (binaryData included) or Secret."""
    data = obj.get("data") or {}
    if resource == SECRETS:
        return {key: base64.b64decode(value or "") for key, value in data.items()}
    binary = obj.get("binaryData") or {}
    return {key: value.encode() for key, value in data.items()} | {
        key: base64.b64decode(value or "") for key, value in binary.items()
    }
