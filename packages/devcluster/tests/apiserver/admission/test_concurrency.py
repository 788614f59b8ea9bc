"""Concurrency: webhooks take their time, and what others write meanwhile is not lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.admission.configurations import MUTATING, VALIDATING, configure, rule, webhook
from packages.devcluster.tests.apiserver.admission.webhook_server import WebhookServer, webhook_server
from packages.devcluster.tests.apiserver.custom_resources.test_controller import (
    CRDS,
    GADGETS,
    definition,
    gadget,
    install,
    until,
)
from packages.devcluster.tests.apiserver.http_client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Api, api_for
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.server import ServerOptions, serve
from trainer_kube_testing import ManualClock

NS = "/api/v1/namespaces/default"
MAPS = f"{NS}/configmaps"


class Gate:
    """Holds calls of a webhook back until the test lets them go."""

    def __init__(self, server: WebhookServer, path: str = "/check") -> None:
        self.waiting = 0
        self.held: Callable[[Object], bool] = lambda request: True
        """Which calls are held."""
        self._changed = asyncio.Event()
        self._open = asyncio.Event()
        server.answers[path] = self._answer

    async def _answer(self, request: Object) -> Object:
        if self.held(request):
            self.waiting += 1
            self._changed.set()
            await self._open.wait()
        return {"allowed": True}

    async def holds(self, count: int) -> None:
        """Wait until so many calls have come."""
        while self.waiting < count:
            self._changed.clear()
            await self._changed.wait()

    def open(self) -> None:
        """Let all calls go, also those to come."""
        self._open.set()


def config_map(name: str = "m", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.mark.parametrize("path", [MUTATING, VALIDATING])
@pytest.mark.parametrize(
    ("content_type", "bodies"),
    [
        pytest.param(MERGE, [{"data": {"a": "1"}}, {"data": {"b": "2"}}], id="merge"),
        pytest.param(STRATEGIC, [{"data": {"a": "1"}}, {"data": {"b": "2"}}], id="strategic"),
        pytest.param(
            JSON_PATCH,
            [[{"op": "add", "path": f"/data/{key}", "value": value}] for key, value in ("a1", "b2")],
            id="json",
        ),
        pytest.param(APPLY, [config_map(a="1"), config_map(b="2")], id="apply"),
    ],
)
async def test_two_patches_at_once(api: Api, tmp_path: Path, path: str, content_type: str, bodies: list[Any]) -> None:
    """Both were made from the same object; the slower one is made once more on the result of the faster."""
    await api("POST", MAPS, config_map(zero="0"))
    async with webhook_server(tmp_path) as server:
        await configure(api, path, webhook(server=server))
        gate = Gate(server)
        query = "?fieldManager=m{}&force=1" if content_type == APPLY else "?fieldManager=m{}"
        requests = [
            asyncio.create_task(api("PATCH", f"{MAPS}/m{query.format(index)}", body, content_type))
            for index, body in enumerate(bodies)
        ]
        await gate.holds(2)
        gate.open()
        assert [(await request).code for request in requests] == [200, 200]
        assert (await api("GET", f"{MAPS}/m")).body["data"] == {"zero": "0", "a": "1", "b": "2"}
        assert len(server.requests) == 3


async def test_an_update_of_what_has_changed_meanwhile(api: Api, tmp_path: Path) -> None:
    """With a resource version it conflicts; without one the last one wins, whole."""
    created = (await api("POST", MAPS, config_map(a="1"))).body
    async with webhook_server(tmp_path) as server:
        await configure(api, VALIDATING, webhook(server=server))
        gate = Gate(server)
        gate.held = lambda request: "from" in request["object"]["data"]
        careful = asyncio.create_task(api("PUT", f"{MAPS}/m", {**created, "data": {"from": "careful"}}))
        bold = asyncio.create_task(api("PUT", f"{MAPS}/m", config_map(**{"from": "bold"})))
        await gate.holds(2)
        assert (await api("PATCH", f"{MAPS}/m", {"data": {"a": "2"}}, MERGE)).code == 200
        gate.open()
        assert (await careful).code == 409
        assert (await bold).body["data"] == {"from": "bold"}


async def test_a_change_of_what_has_gone_meanwhile(api: Api, tmp_path: Path) -> None:
    """There is nothing to change any more."""
    await api("POST", MAPS, config_map())
    async with webhook_server(tmp_path) as server:
        await configure(api, VALIDATING, webhook(server=server, rules=[rule(operations="UPDATE")]))
        gate = Gate(server)
        patch = asyncio.create_task(api("PATCH", f"{MAPS}/m", {"data": {"a": "2"}}, MERGE))
        await gate.holds(1)
        await api("DELETE", f"{MAPS}/m")
        gate.open()
        assert (await patch).code == 404


async def test_a_creation_that_comes_second(api: Api, tmp_path: Path) -> None:
    """A name that is taken meanwhile is taken; an apply changes what is there."""
    async with webhook_server(tmp_path) as server:
        await configure(api, VALIDATING, webhook(server=server))
        gate = Gate(server)
        gate.held = lambda request: "slow" in request["object"]["data"]
        creation = asyncio.create_task(api("POST", MAPS, config_map(slow="1")))
        apply = asyncio.create_task(api.apply(f"{MAPS}/m", config_map(slow="2")))
        await gate.holds(2)
        assert (await api("POST", MAPS, config_map(fast="3"))).code == 201
        gate.open()
        assert (await creation).body["message"] == 'configmaps "m" already exists'
        applied = await apply
        assert (applied.code, applied.body["data"]) == (200, {"fast": "3", "slow": "2"})


async def test_a_deletion_of_what_has_changed_meanwhile(api: Api, tmp_path: Path) -> None:
    """The webhook has to agree to the deletion of the object as it is."""
    await api("POST", MAPS, config_map(a="1"))
    async with webhook_server(tmp_path) as server:
        await configure(api, VALIDATING, webhook(server=server, rules=[rule(operations="DELETE")]))
        gate = Gate(server)
        deletion = asyncio.create_task(api("DELETE", f"{MAPS}/m"))
        await gate.holds(1)
        await api("PATCH", f"{MAPS}/m", {"data": {"a": "2"}}, MERGE)
        gate.open()
        assert (await deletion).code == 200
        assert [request["oldObject"]["data"]["a"] for request in server.requests] == ["1", "2"]


async def test_a_creation_in_a_namespace_that_goes(api: Api, tmp_path: Path) -> None:
    """What the webhooks have let through is not created in a namespace that is ending."""
    await api("POST", "/api/v1/namespaces", {"metadata": {"name": "ending"}})
    async with webhook_server(tmp_path) as server:
        await configure(api, VALIDATING, webhook(server=server))
        gate = Gate(server)
        creation = asyncio.create_task(api("POST", "/api/v1/namespaces/ending/configmaps", config_map()))
        await gate.holds(1)
        await api("DELETE", "/api/v1/namespaces/ending")
        gate.open()
        assert (await creation).code == 403


async def test_a_creation_of_a_kind_that_goes(api: Api, tmp_path: Path) -> None:
    """Nor is a custom resource whose definition is gone."""
    await install(api, definition())
    async with webhook_server(tmp_path) as server:
        await configure(api, VALIDATING, webhook(server=server, rules=[rule("gadgets", group="example.com")]))
        gate = Gate(server)
        creation = asyncio.create_task(api("POST", GADGETS, gadget("a")))
        await gate.holds(1)
        await api("DELETE", f"{CRDS}/gadgets.example.com")
        await until(api, f"{CRDS}/gadgets.example.com", lambda answer: answer.code == 404)
        gate.open()
        assert (await creation).code == 404


async def test_services_created_at_once(api: Api, tmp_path: Path) -> None:
    """Two Services that wait for a webhook do not get the same address."""
    ports = {"ports": [{"port": 80}]}
    async with webhook_server(tmp_path) as server:
        await configure(api, VALIDATING, webhook(server=server, rules=[rule("services")]))
        gate = Gate(server)
        creations = [
            asyncio.create_task(api("POST", f"{NS}/services", {"metadata": {"name": name}, "spec": ports}))
            for name in ("a", "b")
        ]
        await gate.holds(2)
        gate.open()
        first, second = [(await creation).body["spec"]["clusterIP"] for creation in creations]
        assert first != second


async def test_others_go_on(api: Api, tmp_path: Path) -> None:
    """A slow webhook delays neither requests that it does not match, nor reads of the same object."""
    await api("POST", MAPS, config_map())
    async with webhook_server(tmp_path) as server:
        await configure(api, MUTATING, webhook(server=server))
        gate = Gate(server)
        patch = asyncio.create_task(api("PATCH", f"{MAPS}/m", {"data": {"a": "2"}}, MERGE))
        await gate.holds(1)
        assert (await api("GET", f"{MAPS}/m")).code == 200
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
        assert (await api("POST", f"{NS}/secrets", secret)).code == 201
        gate.open()
        assert (await patch).code == 200


async def test_first_objects_of_a_namespace(tmp_path: Path) -> None:
    """What a namespace starts with goes through admission too, and is made when the webhook allows it."""
    clock = ManualClock()
    async with (
        serve(ServerOptions(tmp_path / "data"), clock=clock) as server,
        api_for(server) as api,
        webhook_server(tmp_path) as hooks,
    ):
        allowed, asked = False, asyncio.Event()

        async def answer(request: Object) -> Object:
            asked.set()
            return {"allowed": allowed}

        hooks.answers["/check"] = answer
        await configure(api, VALIDATING, webhook(server=hooks, rules=[rule("serviceaccounts")]))
        await api("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})
        accounts = "/api/v1/namespaces/new/serviceaccounts/default"
        assert (await api("GET", accounts)).code == 404
        await asked.wait()
        assert hooks.requests[0]["userInfo"]["username"] == "system:apiserver"
        allowed = True
        while (await api("GET", accounts)).code == 404:
            await clock.advance(1)
