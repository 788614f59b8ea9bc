"""Which resources the API server serves (legacy discovery, `/api/v1` and `/apis`)."""

from __future__ import annotations

from trainer.kube.client import RawClient
from trainer.kube.errors import NotFoundError
from trainer.kube.resource import Resource

_NEEDED_VERBS = frozenset({"delete", "list", "watch"})


async def served_resources(client: RawClient) -> list[Resource]:
    """The resources whose objects can be listed, watched and deleted, each in one version.

    That is the preferred one of its group, or another one where that does not have it.
    """
    groups = (await client.request("GET", "/apis")).get("groups") or []
    found = {(resource.group, resource.plural): resource for resource in await _resources_of(client, "v1")}
    for group in groups:
        others = (version["groupVersion"] for version in group["versions"])
        for version in dict.fromkeys((group["preferredVersion"]["groupVersion"], *others)):
            for resource in await _resources_of(client, version):
                found.setdefault((resource.group, resource.plural), resource)
    return list(found.values())


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
