"""Several versions of a custom resource through HTTP, with and without a conversion webhook."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from devcluster.tests.apiserver.admission.webhook_server import WebhookServer, webhook_server
from devcluster.tests.apiserver.http_client import MERGE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from devcluster.tests.apiserver.http_client import Answer, Api
    from trainer.kube.objects import Object

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = f"{CRDS}/gadgets.example.com"
V1, V2 = (f"/apis/example.com/{version}/namespaces/default/gadgets" for version in ("v1", "v2"))


@pytest.fixture
async def hook(tmp_path: Path) -> AsyncIterator[WebhookServer]:
    """A conversion webhook that renames `spec.size` of v1 to `spec.replicas` of v2, and back."""
    ready: asyncio.Future[WebhookServer] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()

    async def run() -> None:
        (tmp_path / "hook").mkdir()
        async with webhook_server(tmp_path / "hook") as server:
            server.answers["/convert"] = convert
            ready.set_result(server)
            await stop.wait()

    task = asyncio.create_task(run())
    yield await ready
    stop.set()
    await task


async def convert(request: Object) -> Object:
    return converted([renamed(obj, request["desiredAPIVersion"]) for obj in request["objects"]])


def converted(objects: list[Any]) -> Object:
    return {"convertedObjects": objects, "result": {"status": "Success"}}


def renamed(obj: Object, api_version: str) -> Object:
    old, new = ("size", "replicas") if api_version.endswith("v2") else ("replicas", "size")
    spec = {new if name == old else name: value for name, value in obj["spec"].items()}
    return {**obj, "apiVersion": api_version, "spec": spec}


def version(name: str, *, storage: bool = False, field: str = "size", **more: Any) -> Object:
    spec = {"type": "object", "properties": {field: {"type": "integer"}, "mode": {"type": "string", "default": name}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    selectable = [{"jsonPath": f".spec.{field}"}]
    found = {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}
    return {**found, "selectableFields": selectable, **more}


def definition(*versions: Object, conversion: Object | None = None) -> Object:
    names = {"plural": "gadgets", "kind": "Gadget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": list(versions)}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": spec | ({"conversion": conversion} if conversion else {}),
    }


def by_webhook(server: WebhookServer) -> Object:
    client = {"url": f"{server.url}/convert", "caBundle": server.certificate.ca_bundle}
    return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}


def gadget(name: str, api_version: str = "example.com/v1", **spec: Any) -> Object:
    return {"apiVersion": api_version, "kind": "Gadget", "metadata": {"name": name}, "spec": spec}


async def until(api: Api, path: str, check: Callable[[Answer], bool]) -> Answer:
    async with asyncio.timeout(10):
        while True:
            answer = await api("GET", path)
            if check(answer):
                return answer


async def install(api: Api, body: Object) -> None:
    assert (created := await api("POST", CRDS, body)).code == 201, created.body
    await until(api, CRD, lambda answer: any(c["type"] == "Established" for c in answer.body["status"]["conditions"]))


async def change(api: Api, *versions: Object) -> None:
    """Replace the versions and wait until they are served."""
    patched = await api("PATCH", CRD, {"spec": {"versions": list(versions)}}, MERGE)
    assert patched.code == 200, patched.body
    served = {entry["name"] for entry in versions if entry["served"]}
    known = {entry["version"] for entry in (await api("GET", "/apis/example.com")).body["versions"]}
    if served != known:
        await until(
            api,
            "/apis/example.com",
            lambda answer: {entry["version"] for entry in answer.body["versions"]} == served,
        )


async def test_versions_with_the_same_fields(api: Api) -> None:
    """Strategy None: only the version is another; what a version does not have is left out."""
    await install(api, definition(version("v1", storage=True), version("v2", field="replicas")))
    await api("POST", V1, gadget("a", size=3))
    assert (await api("GET", f"{V2}/a")).body["spec"] == {"mode": "v1"}
    created = await api("POST", V2, gadget("b", "example.com/v2", replicas=2))
    assert (created.body["apiVersion"], created.body["spec"]) == ("example.com/v2", {"mode": "v2"})
    listed = (await api("GET", V1)).body
    assert [item["apiVersion"] for item in listed["items"]] == ["example.com/v1"] * 2


async def test_deprecated_versions_warn(api: Api) -> None:
    """Every request to a deprecated version is answered with a Warning header."""
    old = version("v1beta1", deprecated=True)
    own = version("v1alpha1", deprecated=True, deprecationWarning="use something else")
    await install(api, definition(version("v1", storage=True), old, own))
    expected = ['299 - "example.com/v1beta1 Gadget is deprecated; use example.com/v1 Gadget"']
    beta = V1.replace("v1/", "v1beta1/", 1)
    assert (await api("GET", beta)).warnings == expected
    assert (await api("GET", f"{beta}/nothing")).warnings == expected
    assert (await api("POST", beta, gadget("a", "example.com/v1beta1", size=1))).warnings == expected
    assert (await api("GET", V1.replace("v1/", "v1alpha1/", 1))).warnings == ['299 - "use something else"']
    assert (await api("GET", V1)).warnings == []


async def test_reads_and_writes_are_converted(api: Api, hook: WebhookServer) -> None:
    """Get, list, watch, update, patch and apply see the version that they ask for."""
    versions = version("v1", storage=True), version("v2", field="replicas")
    await install(api, definition(*versions, conversion=by_webhook(hook)))
    created = await api("POST", V2, gadget("a", "example.com/v2", replicas=2))
    assert (created.body["apiVersion"], created.body["spec"]) == ("example.com/v2", {"replicas": 2, "mode": "v2"})
    assert (await api("GET", f"{V1}/a")).body["spec"] == {"size": 2, "mode": "v2"}
    await api("POST", V1, gadget("b", size=5))
    listed = (await api("GET", V2)).body
    assert [item["spec"]["replicas"] for item in listed["items"]] == [2, 5]
    selected = (await api("GET", f"{V2}?fieldSelector=spec.replicas%3D5")).body
    assert [item["metadata"]["name"] for item in selected["items"]] == ["b"]
    patched = await api("PATCH", f"{V2}/b", {"spec": {"replicas": 6}}, MERGE)
    assert (patched.body["spec"]["replicas"], patched.body["metadata"]["generation"]) == (6, 2)
    assert (await api("GET", f"{V1}/b")).body["spec"]["size"] == 6
    applied = await api.apply(f"{V2}/b", gadget("b", "example.com/v2", replicas=6))
    assert applied.body["spec"] == {"replicas": 6, "mode": "v1"}
    events = await api.lines(f"{V2}?watch=true&timeoutSeconds=1")
    assert [event["object"]["spec"]["replicas"] for event in events] == [2, 6]
    deleted = await api("DELETE", f"{V2}/a")
    assert deleted.body["status"] == "Success"


async def test_lists_are_converted_at_once(api: Api, hook: WebhookServer) -> None:
    """One call converts all objects of a list; what has been converted once is kept until it changes."""
    await install(
        api, definition(version("v1", storage=True), version("v2", field="replicas"), conversion=by_webhook(hook))
    )
    for name in "abc":
        await api("POST", V1, gadget(name, size=1))
    assert hook.requests == []
    await api("GET", V2)
    await api("GET", V2)
    assert [len(request["objects"]) for request in hook.requests] == [3]
    assert hook.requests[0]["desiredAPIVersion"] == "example.com/v2"


FAILED = "conversion webhook for example.com/v1, Kind=Gadget"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(
            lambda request: {"result": {"status": "Failure", "message": "no way"}},
            f"{FAILED} failed: no way",
            id="fails",
        ),
        pytest.param(
            lambda request: {"uid": "other", **converted([])}, f'{FAILED} failed: expected response.uid="', id="uid"
        ),
        pytest.param(lambda request: converted([]), f"{FAILED} returned 0 objects, expected 1", id="count"),
        pytest.param(
            lambda request: converted(request["objects"]),
            f"{FAILED} returned invalid converted object at index 0: invalid groupVersion (expected example.com/v2, "
            "received example.com/v1)",
            id="version",
        ),
        pytest.param(
            lambda request: converted(
                [{**renamed(request["objects"][0], "example.com/v2"), "metadata": {"name": "x"}}]
            ),
            f"{FAILED} returned invalid converted object at index 0: must have the same name: a != x",
            id="name",
        ),
        pytest.param(
            lambda request: converted(
                [
                    {
                        **(obj := renamed(request["objects"][0], "example.com/v2")),
                        "metadata": {**obj["metadata"], "labels": {"l": 1}},
                    }
                ]
            ),
            f"{FAILED} returned invalid metadata in object at index 0: metadata.labels[l] must be a string, but is "
            "int64 in converted object",
            id="labels",
        ),
    ],
)
async def test_failures(api: Api, hook: WebhookServer, answer: Callable[[Object], Object], message: str) -> None:
    """What goes wrong is an error 500 with the text of the real server; in a watch it ends the stream."""

    async def reply(request: Object) -> Object:
        return answer(request)

    hook.answers["/convert"] = reply
    await install(
        api, definition(version("v1", storage=True), version("v2", field="replicas"), conversion=by_webhook(hook))
    )
    await api("POST", V1, gadget("a", size=1))
    for path in (f"{V2}/a", V2):
        failed = await api("GET", path)
        assert failed.code == 500
        assert "reason" not in failed.body
        assert failed.body["message"].startswith(message)
    (event,) = await api.lines(f"{V2}?watch=true&timeoutSeconds=1")
    assert (event["type"], event["object"]["code"]) == ("ERROR", 500)


async def test_unreachable_webhooks(api: Api, hook: WebhookServer) -> None:
    """The error says where nobody answers; the storage version goes on."""
    conversion = by_webhook(hook)
    conversion["webhook"]["clientConfig"]["url"] = "https://127.0.0.1:1/convert"
    await install(api, definition(version("v1", storage=True), version("v2", field="replicas"), conversion=conversion))
    await api("POST", V1, gadget("a", size=1))
    assert (await api("GET", f"{V1}/a")).code == 200
    assert (await api("GET", f"{V2}/a")).body["message"] == (
        f'{FAILED} failed: Post "https://127.0.0.1:1/convert?timeout=30s": dial tcp 127.0.0.1:1: connect: connection '
        "refused"
    )


async def test_metadata_stays_as_it_is(api: Api, hook: WebhookServer) -> None:
    """A webhook changes labels and annotations, and no other metadata."""

    async def reply(request: Object) -> Object:
        obj = renamed(request["objects"][0], request["desiredAPIVersion"])
        metadata = {**obj["metadata"], "labels": {"seen": "yes"}, "finalizers": ["x/y"], "generation": 99}
        return converted([{**obj, "metadata": metadata}])

    hook.answers["/convert"] = reply
    await install(
        api, definition(version("v1", storage=True), version("v2", field="replicas"), conversion=by_webhook(hook))
    )
    await api("POST", V1, gadget("a", size=1))
    metadata = (await api("GET", f"{V2}/a")).body["metadata"]
    assert (metadata["labels"], metadata.get("finalizers"), metadata["generation"]) == ({"seen": "yes"}, None, 1)


async def test_the_storage_version_changes(api: Api, hook: WebhookServer) -> None:
    """Old objects are read in both versions; any write stores them anew."""
    await install(
        api, definition(version("v1", storage=True), version("v2", field="replicas"), conversion=by_webhook(hook))
    )
    first = (await api("POST", V1, gadget("a", size=1))).body["metadata"]["resourceVersion"]
    await change(api, version("v1"), version("v2", storage=True, field="replicas"))
    stored = (await until(api, CRD, lambda answer: len(answer.body["status"]["storedVersions"]) == 2)).body["status"]
    assert stored["storedVersions"] == ["v1", "v2"]
    assert (await api("GET", f"{V2}/a")).body["spec"]["replicas"] == 1
    async with asyncio.timeout(10):
        while True:
            patched = (await api("PATCH", f"{V2}/a", {}, MERGE)).body
            if patched["metadata"]["resourceVersion"] != first:
                break
    assert patched["spec"] == {"replicas": 1, "mode": "v1"}
    again = await api("PATCH", f"{V2}/a", {}, MERGE)
    assert again.body["metadata"]["resourceVersion"] == patched["metadata"]["resourceVersion"]


async def test_later_defaults_are_read(api: Api) -> None:
    """A default that came after an object was stored is there for all readers, and fields that went are not."""
    await install(api, definition(version("v1", storage=True)))
    await api("POST", V1, gadget("a", size=1))
    newer = version("v1", storage=True, selectableFields=[])
    properties = newer["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties["colour"] = {"type": "string", "default": "red"}
    del properties["size"]
    await change(api, newer)
    read = await until(api, f"{V1}/a", lambda answer: "colour" in answer.body["spec"])
    assert read.body["spec"] == {"mode": "v1", "colour": "red"}
    assert (await api("GET", V1)).body["items"][0]["spec"] == {"mode": "v1", "colour": "red"}
    events = await api.lines(f"{V1}?watch=true&timeoutSeconds=1")
    assert events[0]["object"]["spec"] == {"mode": "v1", "colour": "red"}
