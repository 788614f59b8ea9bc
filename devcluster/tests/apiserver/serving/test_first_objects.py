"""What every namespace starts with, and keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

if TYPE_CHECKING:
    from devcluster.tests.apiserver.http_client import Api

NS = "/api/v1/namespaces/default"


@pytest.mark.parametrize("name", ["configmaps/kube-root-ca.crt", "serviceaccounts/default"])
async def test_deleted_first_objects_come_back(api: Api, name: str) -> None:
    """Pods can go on to start after somebody has deleted what a namespace starts with."""
    path = f"{NS}/{name}"
    before = (await api("GET", path)).body
    assert (await api("DELETE", path)).code == 200
    with anyio.fail_after(10):
        while (await api("GET", path)).code == 404:
            await anyio.lowlevel.checkpoint()
    after = (await api("GET", path)).body
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after.get("data") == before.get("data")


async def test_first_objects_go_with_their_namespace(api: Api) -> None:
    """They do not come back in a namespace that is being deleted."""
    await api("POST", "/api/v1/namespaces", {"metadata": {"name": "leaving"}})
    await api("DELETE", "/api/v1/namespaces/leaving")
    assert (await api("DELETE", "/api/v1/namespaces/leaving/configmaps/kube-root-ca.crt")).code == 200
    # Two answers of the server later, what follows a change has happened.
    for _ in range(2):
        assert (await api("GET", "/api/v1/namespaces/leaving/configmaps/kube-root-ca.crt")).code == 404
