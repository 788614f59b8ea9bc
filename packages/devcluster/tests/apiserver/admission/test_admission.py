"""Admission through HTTP: what clients see of webhooks, and what webhooks see of clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from packages.devcluster.tests.apiserver.admission.configurations import (
    MUTATING,
    VALIDATING,
    configure,
    rule,
    webhook,
)
from packages.devcluster.tests.apiserver.admission.webhook_server import (
    always,
    encoded,
    patching,
    responding,
    webhook_server,
)
from packages.devcluster.tests.apiserver.custom_resources.test_controller import GADGETS, definition, gadget, install
from packages.devcluster.tests.apiserver.http_client import APPLY, JSON_PATCH, MERGE, Api
from trainer.kube.objects import Object

NS = "/api/v1/namespaces/default"
MAPS = f"{NS}/configmaps"
DENIED = 'admission webhook "check.example.com" denied the request: no'


def config_map(name: str = "m", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str, **spec: Any) -> Object:
    body = {"containers": [{"name": "c", "image": "i"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def add(path: str, value: object) -> Object:
    return {"op": "add", "path": path, "value": value}


async def test_what_webhooks_see_of_a_creation(api: Api, tmp_path: Path) -> None:
    """Mutating webhooks see the object before the server names it, validating ones as it will be stored."""
    async with webhook_server(tmp_path) as server:
        await configure(api, MUTATING, webhook("change", server=server))
        await configure(api, VALIDATING, webhook(server=server))
        body = {**config_map(a="1"), "metadata": {"generateName": "m-"}}
        created = await api("POST", f"{MAPS}?fieldManager=me&fieldValidation=Strict", body)
        (change,), (check,) = server.named("/change"), server.named("/check")
    metadata = created.body["metadata"]
    assert ("name" in change, "uid" in change["object"]["metadata"]) == (False, False)
    assert change["object"]["metadata"]["managedFields"][0]["manager"] == "me"
    assert check["name"] == metadata["name"]
    assert check["object"]["metadata"]["uid"] == metadata["uid"]
    assert change["uid"] != check["uid"]
    expected = {
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "namespace": "default",
        "operation": "CREATE",
        "oldObject": None,
        "dryRun": False,
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
        "options": {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "me",
            "fieldValidation": "Strict",
        },
    }
    assert {name: check[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("method", "content_type", "body"),
    [
        pytest.param("PUT", "application/json", config_map(a="2"), id="update"),
        pytest.param("PATCH", APPLY, config_map(a="2"), id="apply"),
    ],
)
async def test_changes(api: Api, tmp_path: Path, method: str, content_type: str, body: Any) -> None:
    """Every way to change an object is an UPDATE with the old and the new object; webhooks may change or refuse it."""
    await api("POST", MAPS, config_map(a="1"))
    async with webhook_server(tmp_path) as server:
        await configure(api, MUTATING, webhook("change", server=server))
        await configure(api, VALIDATING, webhook(server=server))
        server.answers["/change"] = patching(add("/data/b", "3"))
        path = f"{MAPS}/m?fieldManager=me&force=1" if content_type == APPLY else f"{MAPS}/m"
        changed = await api(method, path, body, content_type)
        assert (changed.code, changed.body["data"]) == (200, {"a": "2", "b": "3"})
        (request,) = server.named("/check")
        assert (request["operation"], request["name"]) == ("UPDATE", "m")
        assert (request["oldObject"]["data"], request["object"]["data"]) == ({"a": "1"}, {"a": "2", "b": "3"})
        assert request["options"]["kind"] == "UpdateOptions"
        server.answers["/check"] = always(allowed=False, status={"code": 403, "reason": "Forbidden", "message": "no"})
        refused = await api(method, path, body, content_type)
        assert (refused.code, refused.body["reason"], refused.body["message"]) == (403, "Forbidden", DENIED)


@pytest.mark.parametrize("path", [MUTATING, VALIDATING])
async def test_failure_policy(api: Api, tmp_path: Path, path: str) -> None:
    """A webhook that cannot be called fails the request, or nothing, as its policy says."""
    async with webhook_server(tmp_path) as server:
        server.answers["/check"] = responding(web.Response(status=503))
        await configure(api, path, webhook(server=server, timeoutSeconds=3), name="closed")
        answer = await api("POST", MAPS, config_map())
        problem = "failed to call webhook: the server responded with the status code 503: Service Unavailable"
        message = f'failed calling webhook "check.example.com": {problem}'
        assert (answer.code, answer.body["reason"]) == (500, "InternalError")
        assert answer.body["message"] == f"Internal error occurred: {message}"
        assert answer.body["details"]["causes"][0]["message"] == f"{message}"
        ignore = {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}
        await api("PATCH", f"{path}/closed", [ignore], JSON_PATCH)
        assert (await api("POST", MAPS, config_map())).code == 201


async def test_deletion(api: Api, tmp_path: Path) -> None:
    """A deletion shows the object that goes; a collection's deletions have no name."""
    await api("POST", MAPS, config_map("m", a="1"))
    await api("POST", MAPS, config_map("n"))
    async with webhook_server(tmp_path) as server:
        await configure(api, VALIDATING, webhook(server=server, rules=[rule(operations="DELETE")]))
        server.answers["/check"] = always(allowed=False, status={"message": "no"}, warnings=["careful"])
        refused = await api("DELETE", f"{MAPS}/m?gracePeriodSeconds=0&propagationPolicy=Background")
        assert (refused.code, refused.body["message"], refused.warnings) == (400, DENIED, ['299 - "careful"'])
        assert (await api("DELETE", MAPS)).code == 400
        server.answers.clear()
        assert (await api("DELETE", f"{MAPS}/m")).code == 200
        assert (await api("DELETE", MAPS)).code == 200
    first = server.requests[0]
    assert (first["operation"], first["object"], first["oldObject"]["data"]) == ("DELETE", None, {"a": "1"})
    assert first["options"] == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
    }
    assert [request.get("name") for request in server.requests] == ["m", None, "m", None, None]
    left = {item["metadata"]["name"] for item in (await api("GET", MAPS)).body["items"]}
    assert left <= {"kube-root-ca.crt"}, "which every namespace gets again"


async def test_a_deletion_cannot_be_changed(api: Api, tmp_path: Path) -> None:
    """There is no object that a patch could be applied to."""
    await api("POST", MAPS, config_map())
    async with webhook_server(tmp_path) as server:
        await configure(api, MUTATING, webhook(server=server))
        server.answers["/check"] = patching(add("/data", {}))
        answer = await api("DELETE", f"{MAPS}/m")
    message = 'Internal error occurred: admission webhook "check.example.com" attempted to modify the object, which is '
    assert (answer.code, answer.body["message"]) == (500, f"{message}not supported for this operation")


async def test_dry_run(api: Api, tmp_path: Path) -> None:
    """Webhooks without side effects are called and notified; nothing is stored."""
    async with webhook_server(tmp_path) as server:
        await configure(api, MUTATING, webhook(server=server, sideEffects="NoneOnDryRun"))
        server.answers["/check"] = patching(add("/data/b", "3"))
        answer = await api("POST", f"{MAPS}?dryRun=All", config_map(a="1"))
        assert (answer.code, answer.body["data"]) == (201, {"a": "1", "b": "3"})
        assert (server.requests[0]["dryRun"], server.requests[0]["options"]["dryRun"]) == (True, ["All"])
        assert (await api("GET", f"{MAPS}/m")).code == 404


def nested(depth: int) -> list[Any]:
    innermost: list[Any] = []
    for _ in range(depth):
        innermost = [innermost]
    return innermost


@pytest.mark.parametrize(
    ("operations", "code", "message"),
    [
        pytest.param(
            [add("/spec/priority", "high")],
            500,
            "cannot unmarshal string into Go struct field PodSpec.spec.priority",
            id="wrong type",
        ),
        pytest.param([{"op": "replace"}], 500, "", id="no operation"),
        pytest.param({"op": "add"}, 500, "received undecodable patch in webhook response", id="no list"),
        pytest.param([{"op": "remove", "path": "/metadata"}], 500, "without metadata", id="no metadata"),
        pytest.param([add("/spec/x", nested(900))], 500, "nests the object too deeply", id="deeper than can be copied"),
        pytest.param([add("/spec/restartPolicy", "x")], 422, "spec.restartPolicy: Unsupported value", id="invalid"),
    ],
)
async def test_patches_that_spoil_the_object(
    api: Api, tmp_path: Path, operations: Any, code: int, message: str
) -> None:
    """What a webhook does wrong is not the dev cluster's bug, and what it makes is validated like everything else."""
    async with webhook_server(tmp_path) as server:
        await configure(api, MUTATING, webhook(server=server, rules=[rule("pods")]))
        server.answers["/check"] = always(allowed=True, patchType="JSONPatch", patch=encoded(operations))
        answer = await api("POST", f"{NS}/pods", pod("p"))
    assert answer.code == code, answer.body
    assert message in answer.body["message"]
    assert "has a bug" not in answer.body["message"]


async def test_status_and_scale(api: Api, tmp_path: Path) -> None:
    """Subresources are their own resource to rules; the scale is a Scale."""
    await install(api, definition())
    await api("POST", GADGETS, gadget("a", n=2))
    async with webhook_server(tmp_path) as server:
        for name in ("gadgets", "gadgets/status", "gadgets/scale"):
            path = f"/{name.replace('/', '-')}"
            hook = webhook(path.strip("/"), path=path, server=server, rules=[rule(name, group="example.com")])
            await configure(api, MUTATING, hook, name=path.strip("/"))
        status = await api("PATCH", f"{GADGETS}/a/status", {"status": {"n": 1}}, MERGE)
        assert status.code == 200
        (request,) = server.requests
        assert (request["subResource"], request["kind"]["kind"]) == ("status", "Gadget")
        assert request["object"]["status"] == {"n": 1}
        server.requests.clear()
        server.paths.clear()
        server.answers["/gadgets-scale"] = patching(add("/spec/replicas", 4))
        scale = await api("PATCH", f"{GADGETS}/a/scale", {"spec": {"replicas": 3}}, MERGE)
        assert (scale.code, scale.body["spec"]["replicas"]) == (200, 4)
        (request,) = server.requests
        assert request["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        assert request["resource"] == {"group": "example.com", "version": "v1", "resource": "gadgets"}
        assert (request["object"]["spec"], request["oldObject"]["spec"]) == ({"replicas": 3}, {"replicas": 2})
        assert (await api("GET", f"{GADGETS}/a")).body["spec"]["n"] == 4


async def test_binding(api: Api, tmp_path: Path) -> None:
    """Assigning a pod to a node is the creation of a Binding, not an update of the pod."""
    await api("POST", f"{NS}/pods", pod("p"))
    async with webhook_server(tmp_path) as server:
        await configure(api, VALIDATING, webhook(server=server, rules=[rule("pods/*")]))
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "n"}}
        server.answers["/check"] = always(allowed=False, status={"message": "no"})
        assert (await api("POST", f"{NS}/pods/p/binding", body)).body["message"] == DENIED
        server.answers.clear()
        assert (await api("POST", f"{NS}/pods/p/binding", body)).code == 201
    assert [request["operation"] for request in server.requests] == ["CREATE", "CREATE"]
    request = server.requests[0]
    assert (request["subResource"], request["name"], request["kind"]["kind"]) == ("binding", "p", "Binding")
    assert (request["object"]["target"], request["oldObject"]) == ({"name": "n"}, None)


@pytest.mark.parametrize(
    ("policy", "expression", "code", "calls"),
    [
        pytest.param("Fail", "object.metadata.name == 'm'", 201, 1, id="true"),
        pytest.param("Fail", "object.metadata.name != 'm'", 201, 0, id="false"),
        pytest.param("Fail", "object.missing.x == 1", 403, 0, id="an error fails the request"),
        pytest.param("Ignore", "object.missing.x == 1", 201, 0, id="an error skips the webhook"),
    ],
)
async def test_match_conditions(api: Api, tmp_path: Path, policy: str, expression: str, code: int, calls: int) -> None:
    """Conditions decide whether a webhook is called; what cannot be evaluated follows the failure policy."""
    condition = {"name": "c", "expression": expression}
    async with webhook_server(tmp_path) as server:
        await configure(api, VALIDATING, webhook(server=server, failurePolicy=policy, matchConditions=[condition]))
        answer = await api("POST", MAPS, config_map())
        assert (answer.code, len(server.requests)) == (code, calls)
    if code == 403:
        assert answer.body["message"] == (
            "configmaps \"m\" is forbidden: expression 'object.missing.x == 1' resulted in error: "
            'Key not found in map : "missing"'
        )


async def test_namespaces_count_as_their_own(api: Api, tmp_path: Path) -> None:
    """A webhook can pick namespaces by their labels also when they are made."""
    selector = {"matchLabels": {"team": "x"}}
    async with webhook_server(tmp_path) as server:
        server.answers["/check"] = always(allowed=False, status={"message": "no"})
        await configure(api, VALIDATING, webhook(server=server, rules=[rule("namespaces")], namespaceSelector=selector))
        namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        assert (await api("POST", "/api/v1/namespaces", namespace)).code == 201
        namespace["metadata"] = {"name": "other", "labels": {"team": "x"}}
        assert (await api("POST", "/api/v1/namespaces", namespace)).body["message"] == DENIED
        (request,) = server.requests
        assert (request["namespace"], request["name"]) == ("other", "other")


async def test_equivalent_versions(api: Api, tmp_path: Path) -> None:
    """A rule for one version sees objects written in another, converted both ways."""
    crd = definition()
    old = {**crd["spec"]["versions"][0], "name": "v1beta1", "storage": False}
    crd["spec"]["versions"].append(old)
    await install(api, crd)
    rules = [{**rule("gadgets", group="example.com"), "apiVersions": ["v1beta1"]}]
    async with webhook_server(tmp_path) as server:
        await configure(api, MUTATING, webhook(server=server, rules=rules))
        server.answers["/check"] = patching(add("/spec/n", 7))
        created = await api("POST", GADGETS, gadget("a"))
        (request,) = server.requests
    assert (created.body["apiVersion"], created.body["spec"]["n"]) == ("example.com/v1", 7)
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v1beta1", "v1")
    assert (request["resource"]["version"], request["requestResource"]["version"]) == ("v1beta1", "v1")
    assert request["object"]["apiVersion"] == "example.com/v1beta1"


SIDECAR = {"name": "sidecar", "image": "i", "imagePullPolicy": "Always"}


async def test_pods_that_webhooks_have_changed_are_admitted_again(api: Api, tmp_path: Path) -> None:
    """A container that a webhook adds gets its token, which those webhooks see that want to be called again."""
    async with webhook_server(tmp_path) as server:
        server.answers["/change"] = patching(add("/spec/containers/1", SIDECAR))
        wanted: dict[str, Any] = {"server": server, "rules": [rule("pods", "CREATE")]}
        await configure(api, MUTATING, webhook("change", **wanted), name="a")
        await configure(api, MUTATING, webhook("look", reinvocationPolicy="IfNeeded", **wanted), name="b")
        created = await api("POST", f"{NS}/pods", pod("p"))
        looks = [request["object"]["spec"]["containers"] for request in server.named("/look")]
    spec = created.body["spec"]
    (volume,) = spec["volumes"]
    assert [[mount["name"] for mount in each["volumeMounts"]] for each in spec["containers"]] == [[volume["name"]]] * 2
    assert ["volumeMounts" in containers[1] for containers in looks] == [False, True]
    assert len(server.named("/change")) == 1


async def test_pods_without_account_are_refused_before_webhooks_are_asked(api: Api, tmp_path: Path) -> None:
    """The refusal calls a pod that the server is to name by the beginning of its name."""
    async with webhook_server(tmp_path) as server:
        await configure(api, MUTATING, webhook("change", server=server, rules=[rule("pods", "CREATE")]))
        body = {**pod("", serviceAccountName="nobody"), "metadata": {"generateName": "p-"}}
        refused = await api("POST", f"{NS}/pods", body)
        assert server.requests == []
    message = 'error looking up service account default/nobody: serviceaccount "nobody" not found'
    assert (refused.code, refused.body["message"]) == (403, f'pods "p-" is forbidden: {message}')


DEFAULTS: dict[str, Any] = {
    "failurePolicy": "Fail",
    "matchPolicy": "Exact",
    "timeoutSeconds": 10,
    "namespaceSelector": {},
    "objectSelector": {},
}
