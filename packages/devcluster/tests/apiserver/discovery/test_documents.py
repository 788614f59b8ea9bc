"""Discovery, OpenAPI, version and health through HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from packages.devcluster.tests.apiserver.http_client import Api

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param("/api", "APIVersions", id="core versions"),
        pytest.param("/apis", "APIGroupList", id="groups"),
        pytest.param("/apis/batch", "APIGroup", id="one group"),
        pytest.param("/api/v1", "APIResourceList", id="core resources"),
        pytest.param("/apis/batch/v1", "APIResourceList", id="resources of a group"),
    ],
)
async def test_legacy_discovery(api: Api, path: str, kind: str) -> None:
    """Each level of discovery has its document."""
    answer = await api("GET", path)
    assert (answer.code, answer.body["kind"]) == (200, kind)


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_aggregated_discovery(api: Api, path: str) -> None:
    """kubectl gets everything in one document, and 304 when it has it already."""
    answer = await api("GET", path, Accept=f"{AGGREGATED},application/json")
    assert answer.headers["Content-Type"] == AGGREGATED
    assert answer.body["kind"] == "APIGroupDiscoveryList"
    again = await api("GET", path, Accept=AGGREGATED, If_None_Match=answer.headers["ETag"])
    assert again.code == 304


async def test_address_of_the_server(api: Api) -> None:
    """Core discovery says what the client has called the server, whatever others call it."""
    for name in ("a.example.com", "b.example.com"):
        served = (await api("GET", "/api", Host=name)).body["serverAddressByClientCIDRs"]
        assert [entry["serverAddress"] for entry in served] == [name]


async def test_openapi(api: Api) -> None:
    """The index leads to a document for each group and version, with a schema for each kind."""
    index = (await api("GET", "/openapi/v3")).body["paths"]
    document = (await api("GET", index["apis/batch/v1"]["serverRelativeURL"])).body
    assert "io.k8s.api.batch.v1.Job" in document["components"]["schemas"]
    assert (await api("GET", "/openapi/v3/apis/nothing/v1")).code == 404


async def test_version_is_that_of_kubernetes(api: Api) -> None:
    """Clients compare the version with theirs, with and without a slash at the end."""
    for path in ("/version", "/version/"):
        body = (await api("GET", path)).body
        assert (body["major"], body["gitVersion"].split(".")[:2]) == ("1", ["v1", body["minor"]])


async def test_unknown_groups(api: Api) -> None:
    """A group that is not served is no Status but the plain text of the real server."""
    answer = await api("GET", "/apis/no.such.group/v1/things")
    assert (answer.code, answer.body) == (404, "404 page not found\n")


async def test_root_lists_paths(api: Api) -> None:
    """The root says where to look."""
    assert {"/api/v1", "/apis/batch/v1", "/openapi/v3"} <= set((await api("GET", "/")).body["paths"])
