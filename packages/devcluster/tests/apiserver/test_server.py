"""The server through HTTP: what a client of the objects sees."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from packages.devcluster.tests.apiserver.http_client import MERGE, Api
from trainer.kube.objects import Object

NS = "/api/v1/namespaces/default"
MAPS = f"{NS}/configmaps"
PODS = f"{NS}/pods"


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str) -> Object:
    containers = [{"name": "c", "image": "i", "command": ["true"]}, {"name": "d", "image": "j"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}


async def test_a_body_in_a_broken_encoding_is_refused(api: Api) -> None:
    """A body that is not compressed as its header says is the client's fault."""
    answer = await api("POST", MAPS, b"{}", Content_Encoding="gzip")
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(("method", "subresource"), [("GET", "attach"), ("POST", "portforward"), ("PATCH", "resize")])
async def test_unsupported_subresources_are_named(api: Api, method: str, subresource: str) -> None:
    """What other clusters can do with a pod and this one cannot is refused in so many words."""
    answer = await api(method, f"{PODS}/p/{subresource}")
    assert (answer.code, answer.body["message"]) == (405, f"the dev cluster does not support pods/{subresource}")


async def test_long_answers_are_whole(api: Api) -> None:
    """A list, a watch and a deletion of more objects than are handled at once leave none out."""
    names = [f"m{number:03}" for number in range(520)]
    for name in names:
        await api("POST", MAPS, config_map(name, text="x" * 1000))
    query = "fieldSelector=metadata.name!=kube-root-ca.crt"
    listed = (await api("GET", f"{MAPS}?{query}")).body
    assert [item["metadata"]["name"] for item in listed["items"]] == names
    events = await api.lines(f"{MAPS}?watch=1&timeoutSeconds=1&{query}")
    assert [event["object"]["metadata"]["name"] for event in events] == names
    deleted = (await api("DELETE", f"{MAPS}?{query}")).body
    assert deleted["items"] == listed["items"]
    assert (await api("GET", f"{MAPS}?{query}")).body["items"] == []


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type", "code"),
    [
        pytest.param("GET", "/nothing", None, "", 404, id="unknown path"),
        pytest.param("POST", "/version", b"", "", 405, id="post to a document"),
        pytest.param("POST", MAPS, b"[" * 50_000, "application/json", 400, id="nested too deeply"),
        pytest.param("POST", MAPS, b"x" * (3 * 1024 * 1024 + 1), "application/json", 413, id="too large"),
        pytest.param("POST", MAPS, b"{}", "text/plain", 415, id="unknown media type"),
        pytest.param("DELETE", NS, None, "", 403, id="protected namespace"),
    ],
)
async def test_bad_requests(api: Api, method: str, path: str, body: Any, content_type: str, code: int) -> None:
    """Whatever a client does wrong gets an answer that says so, as a Status."""
    answer = await api(method, path, body, content_type)
    assert answer.code == code
    if isinstance(answer.body, dict):
        assert (answer.body["kind"], answer.body["code"]) == ("Status", code)


async def test_authentication(api: Api) -> None:
    """Without a token only version and health are answered; clients can check who the server is."""
    codes = {}
    for path in ("/version", "/readyz", "/api", MAPS):
        async with api.session.get(api.server.url + path) as response:
            codes[path] = response.status
    assert codes == {"/version": 200, "/readyz": 200, "/api": 403, MAPS: 403}
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(api.server.url)


async def test_binding(api: Api) -> None:
    """A binding assigns a pod to a node once."""
    await api("POST", PODS, pod("p"))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n"},
    }
    assert (await api("POST", f"{PODS}/p/binding", binding)).code == 201
    assert (await api("POST", f"{PODS}/p/binding", binding)).code == 409
    bound = (await api("GET", f"{PODS}/p")).body
    assert bound["spec"]["nodeName"] == "n"
    assert [c["status"] for c in bound["status"]["conditions"] if c["type"] == "PodScheduled"] == ["True"]
    assert (await api("POST", f"{PODS}/p/binding", {"target": {}})).code == 422


async def test_dry_run_stores_nothing(api: Api) -> None:
    """A dry run goes through all checks and answers without a version."""
    answer = await api("POST", f"{MAPS}?dryRun=All", config_map("a"))
    assert answer.code == 201
    assert "resourceVersion" not in answer.body["metadata"]
    assert (await api("GET", f"{MAPS}/a")).code == 404
    await api("POST", MAPS, config_map("b", k="1"))
    changed = await api("PATCH", f"{MAPS}/b?dryRun=All", {"data": {"k": "2"}}, MERGE)
    assert changed.body["data"] == {"k": "2"}
    assert (await api("GET", f"{MAPS}/b")).body["data"] == {"k": "1"}
    assert (await api("POST", f"{MAPS}?dryRun=All", config_map("b"))).code == 409
