"""What an autoscaler scales: any resource with a scale subresource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.errors import KubeError
from trainer.kube.resource import Resource

if TYPE_CHECKING:
    from trainer.kube.client import Client
    from trainer.kube.objects import Object
    from trainer_devcluster.controllers.served_resources import RawClient

_SCALE = "scale"


class ScaleTargets:
    """Reads and writes Scales, by the kind that `scaleTargetRef` names."""

    def __init__(self, client: Client, raw_client: RawClient) -> None:
        self._client = client
        self._raw_client = raw_client
        self._resources: dict[tuple[str, str], Resource] = {}

    async def get(self, reference: Object, namespace: str) -> Object:
        """The Scale of the target.

        Raises:
            KubeError: there is no such kind with a scale subresource, no such object, or the server does not answer.
        """
        resource = await self._resource(reference)
        return await self._client.get(resource, reference["name"], namespace, subresource=_SCALE)

    async def set(self, reference: Object, namespace: str, replicas: int) -> None:
        """Change the number of replicas. Raises `KubeError`."""
        resource = await self._resource(reference)
        body = {"spec": {"replicas": replicas}}
        await self._client.patch(resource, reference["name"], body, namespace, subresource=_SCALE)

    async def _resource(self, reference: Object) -> Resource:
        api_version, kind = str(reference.get("apiVersion") or ""), str(reference.get("kind") or "")
        if (api_version, kind) not in self._resources:
            self._resources[api_version, kind] = await self._discover(api_version, kind)
        return self._resources[api_version, kind]

    async def _discover(self, api_version: str, kind: str) -> Resource:
        group, _, version = api_version.rpartition("/")
        prefix = "/apis" if group else "/api"
        served = (await self._raw_client.request("GET", f"{prefix}/{api_version}")).get("resources") or []
        names = {entry["name"] for entry in served}
        for entry in served:
            if entry["kind"] == kind and "/" not in entry["name"] and f"{entry['name']}/{_SCALE}" in names:
                return Resource(group, version, entry["name"], kind, entry["namespaced"])
        raise KubeError(f"no matches for kind {kind!r} with a scale subresource in {api_version!r}")
