"""A server that finds the objects of the one before it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.custom_resources.test_controller import GADGETS, definition, gadget, install
from packages.devcluster.tests.apiserver.http_client import Api, api_for
from trainer_devcluster.apiserver.server import ServerOptions, serve

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def served(path: Path, *, persistent: bool = True) -> AsyncIterator[Api]:
    async with serve(ServerOptions(path, persistent=persistent)) as server, api_for(server) as api:
        yield api


async def everything(api: Api) -> dict[str, Any]:
    """All objects of all kinds, by path."""
    found = {}
    for group_version in ("/api/v1", "/apis/apiextensions.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1"):
        for resource in (await api("GET", group_version)).body["resources"]:
            if "list" in resource["verbs"]:
                path = f"{group_version}/{resource['name']}"
                found[path] = (await api("GET", path)).body["items"]
    return found


async def test_all_objects_are_back(tmp_path: Path) -> None:
    """Nothing is made a second time, nothing is lost, and resource versions go on."""
    async with served(tmp_path) as api:
        created = await api("POST", CONFIG_MAPS, {"metadata": {"name": "kept"}, "data": {"key": "ü\n"}})
        assert created.code == 201
        before = await everything(api)
        assert before["/api/v1/configmaps"]
        assert before["/apis/rbac.authorization.k8s.io/v1/clusterroles"]
        revision = (await api("GET", CONFIG_MAPS)).body["metadata"]["resourceVersion"]
    async with served(tmp_path) as api:
        assert await everything(api) == before
        again = await api("POST", CONFIG_MAPS, {"metadata": {"name": "next"}})
        assert int(again.body["metadata"]["resourceVersion"]) > int(revision)


async def test_watches_go_on(tmp_path: Path) -> None:
    """A watch from a resource version of the last server sees what came after it, from before the restart and since."""
    async with served(tmp_path) as api:
        start = (await api("GET", CONFIG_MAPS)).body["metadata"]["resourceVersion"]
        await api("POST", CONFIG_MAPS, {"metadata": {"name": "before"}})
    async with served(tmp_path) as api:
        await api("POST", CONFIG_MAPS, {"metadata": {"name": "after"}})
        events = await api.lines(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={start}")
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
            ("ADDED", "before"),
            ("ADDED", "after"),
        ]
        [expired] = await api.lines(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion=1")
        assert (expired["type"], expired["object"]["code"]) == ("ERROR", 410)


async def test_custom_resources_are_served_from_the_first_request_on(tmp_path: Path) -> None:
    """Definitions that were served are served again before anything is answered, and their objects are there."""
    async with served(tmp_path) as api:
        await install(api, definition())
        created = await api("POST", GADGETS, gadget("w"))
        assert created.code == 201
    async with served(tmp_path) as api:
        assert (await api("GET", f"{GADGETS}/w")).body == created.body


@pytest.mark.parametrize("persistent", [True, False])
async def test_without_persistence_nothing_is_kept(tmp_path: Path, persistent: bool) -> None:
    """A server without a data directory forgets its objects, and clients of the old one notice."""
    async with served(tmp_path, persistent=persistent) as api:
        created = await api("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
    async with served(tmp_path, persistent=persistent) as api:
        assert (await api("GET", f"{CONFIG_MAPS}/a")).code == (200 if persistent else 404)
        version = created.body["metadata"]["resourceVersion"]
        events = await api.lines(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={version}")
        assert [event["object"]["code"] for event in events] == ([] if persistent else [410])
