"""What the audit log says about requests, as a real server with policy level Metadata would."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.authorization.samples import binding, role
from packages.devcluster.tests.apiserver.http_client import Api, api_for
from trainer_devcluster.apiserver.authorization.rules import PolicyRule
from trainer_devcluster.apiserver.server import ServerOptions, serve
from trainer_devcluster.feature_gates import FeatureGates

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


@pytest.mark.parametrize(
    ("request_line", "headers", "expected"),
    [
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
            f"GET {MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            {},
            {"verb": "watch", "responseStatus": 422},
            id="streaming lists are off",
        ),
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
