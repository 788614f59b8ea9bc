"""Which resources the API server serves (legacy discovery, `/api/v1` and `/apis`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.errors import NotFoundError
from trainer.kube.resource import Resource

if TYPE_CHECKING:
    from trainer.kube.client import RawClient

_NEEDED_VERBS = frozenset({"delete", "list", "watch"})


async def served_resources(client: RawClient) -> list[Resource]:
    """The resources, in their preferred versions, whose objects can be listed, watched and deleted."""
    groups = (await client.request("GET", "/apis")).get("groups") or []
    versions = ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]
    found: list[Resource] = []
    for version in versions:
        found += await _resources_of(client, version)
    return found


async def _resources_of(client: RawClient, group_version: str) -> list[Resource]:
    group, _, version = group_version.rpartition("/")
    try:
        answer = await client.request("GET", f"/apis/{group_version}" if group else f"/api/{group_version}")
    except NotFoundError:
        # Its last custom resource definition has just been deleted.
        return []
    return [
        Resource(group, version, entry["name"], entry["kind"], entry["namespaced"])
        for entry in answer.get("resources") or []
        if "/" not in entry["name"] and set(entry.get("verbs") or ()) >= _NEEDED_VERBS
    ]
