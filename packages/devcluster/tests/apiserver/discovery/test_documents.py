"""Discovery, OpenAPI, version and health through HTTP."""

from __future__ import annotations

import pytest

from packages.devcluster.tests.apiserver.http_client import Api

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_aggregated_discovery(api: Api, path: str) -> None:
    """kubectl gets everything in one document, and 304 when it has it already."""
    answer = await api("GET", path, Accept=f"{AGGREGATED},application/json")
    assert answer.headers["Content-Type"] == AGGREGATED
    assert answer.body["kind"] == "APIGroupDiscoveryList"
    again = await api("GET", path, Accept=AGGREGATED, If_None_Match=answer.headers["ETag"])
    assert again.code == 304


async def test_openapi(api: Api) -> None:
    """The index leads to a document for each group and version, with a schema for each kind."""
    index = (await api("GET", "/openapi/v3")).body["paths"]
    document = (await api("GET", index["apis/batch/v1"]["serverRelativeURL"])).body
    assert "io.k8s.api.batch.v1.Job" in document["components"]["schemas"]
    assert (await api("GET", "/openapi/v3/apis/nothing/v1")).code == 404


async def test_root_lists_paths(api: Api) -> None:
    """The root says where to look."""
    assert {"/api/v1", "/apis/batch/v1", "/openapi/v3"} <= set((await api("GET", "/")).body["paths"])
