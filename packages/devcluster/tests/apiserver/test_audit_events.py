"""What the audit log says about requests, as a real server with policy level Metadata would."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.authorization.samples import binding, role
from packages.devcluster.tests.apiserver.http_client import Api, api_for
from trainer.kube.clock import parse_timestamp
from trainer_devcluster.apiserver.authorization.rules import PolicyRule
from trainer_devcluster.apiserver.server import ServerOptions, serve
from trainer_devcluster.feature_gates import FeatureGates
from trainer_kube_testing import settle

RBAC = "/apis/rbac.authorization.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
ADMINISTRATOR = {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}


def options(tmp_path: Path) -> ServerOptions:
    """Of a server that writes audit.log."""
    return ServerOptions(
        tmp_path / "data", audit_log=tmp_path / "audit.log", feature_gates=FeatureGates(watch_list=False)
    )


@asynccontextmanager
async def audited(tmp_path: Path) -> AsyncIterator[Api]:
    async with serve(options(tmp_path)) as server, api_for(server) as api:
        yield api


def events(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]


async def wait_for_events(tmp_path: Path, count: int) -> None:
    """Answers do not wait until they are logged."""
    while len(events(tmp_path)) < count:
        await settle()


async def test_whole_event(tmp_path: Path) -> None:
    """A creation is logged with user, object and outcome; its name is from the body, which is not logged."""
    async with audited(tmp_path) as api:
        await api(
            "POST", f"{MAPS}?fieldManager=me", {"metadata": {"name": "new"}, "data": {"a": "b"}}, User_Agent="me/1"
        )
    [event] = events(tmp_path)
    received, complete = (parse_timestamp(event.pop(name)) for name in ("requestReceivedTimestamp", "stageTimestamp"))
    assert received <= complete
    assert len(event.pop("auditID")) == 36
    assert event == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": f"{MAPS}?fieldManager=me",
        "verb": "create",
        "user": ADMINISTRATOR,
        "sourceIPs": ["127.0.0.1"],
        "userAgent": "me/1",
        "objectRef": {"resource": "configmaps", "namespace": "default", "name": "new", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "annotations": {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""},
    }


@pytest.mark.parametrize(
    ("request_line", "headers", "expected"),
    [
        pytest.param(
            "GET /apis/batch/v1/namespaces/default/jobs/a/status",
            {},
            {
                "verb": "get",
                "objectRef": {
                    "resource": "jobs", "namespace": "default", "name": "a", "apiGroup": "batch", "apiVersion": "v1",
                    "subresource": "status",
                },
                "responseStatus": {
                    "metadata": {}, "status": "Failure", "message": 'jobs.batch "a" not found', "reason": "NotFound",
                    "details": {"name": "a", "group": "batch", "kind": "jobs"}, "code": 404,
                },
            },
            id="failure",
        ),
        pytest.param("GET /readyz", {}, {"verb": "get", "objectRef": None, "requestURI": "/readyz"}, id="path"),
        pytest.param(
            "GET /api/v1/secrets",
            {"Authorization": "Bearer wrong"},
            {"user": {}, "verb": "list", "objectRef": {"resource": "secrets", "apiVersion": "v1"}, "annotations": None},
            id="nobody knows who",
        ),
        pytest.param(
            "GET /api/v1/secrets",
            {"Impersonate-User": "bob"},
            {
                "user": ADMINISTRATOR,
                "impersonatedUser": {"username": "bob", "groups": ["system:authenticated"]},
                "annotations": {"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""},
            },
            id="may not",
        ),
        pytest.param(
            f"GET {MAPS}/a",
            {"Impersonate-User": "reader"},
            {
                "annotations": {
                    "authorization.k8s.io/decision": "allow",
                    "authorization.k8s.io/reason": 'RBAC: allowed by RoleBinding "readers/default" of Role "reader" to '
                    'User "reader"',
                },
            },
            id="may",
        ),
        pytest.param(
            f"GET {MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            {},
            {"verb": "watch", "responseStatus": 422},
            id="streaming lists are off",
        ),
        pytest.param("GET /api/v1/namespaces/%FF/pods/%C3%28", {}, {"verb": "get"}, id="no text"),
    ],
)  # fmt: skip
async def test_outcomes(tmp_path: Path, request_line: str, headers: dict[str, str], expected: dict[str, Any]) -> None:
    """Refusals and failures are reported with their reason, and who sends a request on whose behalf."""
    method, path = request_line.split()
    async with audited(tmp_path) as api:
        reader = role("reader", PolicyRule(("get",), ("",), ("configmaps",)), namespace="default")
        assert (await api("POST", f"{RBAC}/namespaces/default/roles", reader)).code == 201
        bound = binding("readers", "Role/reader", "user reader", namespace="default")
        assert (await api("POST", f"{RBAC}/namespaces/default/rolebindings", bound)).code == 201
        answer = await api(method, path, **{name.replace("-", "_"): value for name, value in headers.items()})
    event = events(tmp_path)[-1]
    assert event["responseStatus"]["code"] == answer.code
    if isinstance(expected.get("responseStatus"), int):
        expected = {**expected, "responseStatus": event["responseStatus"]}
        assert answer.code == 422
    assert {name: event.get(name) for name in expected} == expected


async def test_watches_are_reported_at_their_end(tmp_path: Path) -> None:
    """A watch is reported when it times out, when its client leaves, and when the server stops."""
    async with AsyncExitStack() as stays, serve(options(tmp_path)) as server:
        api = await stays.enter_async_context(api_for(server))
        headers = {"Authorization": f"Bearer {server.token}"}
        watch = f"{server.url}{MAPS}?watch=1&labelSelector=way"
        await api.lines(f"{MAPS}?watch=1&timeoutSeconds=1&labelSelector=way=timeout")
        async with api.session.get(f"{watch}=left", headers=headers):
            await wait_for_events(tmp_path, 1)
        await wait_for_events(tmp_path, 2)
        await stays.enter_async_context(api.session.get(f"{watch}=stopped", headers=headers))
        assert len(events(tmp_path)) == 2
    reported = [
        (event["requestURI"].rpartition("=")[2], event["verb"], event["responseStatus"]) for event in events(tmp_path)
    ]
    assert reported == [(way, "watch", {"metadata": {}, "code": 200}) for way in ("timeout", "left", "stopped")]


async def test_without_an_audit_log(tmp_path: Path) -> None:
    """Nothing is written unless it is asked for."""
    async with serve(ServerOptions(tmp_path)) as server, api_for(server) as api:
        assert (await api("GET", "/readyz")).code == 200
    assert not list(tmp_path.glob("*audit*"))
