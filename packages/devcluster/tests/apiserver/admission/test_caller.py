"""Calling webhooks over TLS: addresses, trust, time limits and the texts of failures."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from packages.devcluster.tests.apiserver.admission.certificates import issue
from packages.devcluster.tests.apiserver.admission.configurations import MUTATING, configuration, webhook
from packages.devcluster.tests.apiserver.admission.webhook_server import (
    WebhookServer,
    listening,
    responding,
    webhook_server,
)
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import SERVICES
from trainer_devcluster.apiserver.admission.admission import Caller, CallError
from trainer_devcluster.apiserver.admission.review import WebhookDecision
from trainer_devcluster.apiserver.admission.webhook import Webhook, webhooks_of
from trainer_devcluster.apiserver.storage.storage import Partition, Storage
from trainer_devcluster.apiserver.webhooks.client import ENDPOINT_SLICES, webhook_client
from trainer_kube_testing import ManualClock

REQUEST = {"uid": "u", "operation": "CREATE"}
CALL_DEFAULTS = {
    "failurePolicy": "Fail",
    "matchPolicy": "Exact",
    "timeoutSeconds": 5,
    "namespaceSelector": {},
    "objectSelector": {},
}


def made(server: WebhookServer, **fields: Any) -> Webhook:
    return webhooks_of(configuration(MUTATING, "c", webhook(server=server, **{**CALL_DEFAULTS, **fields})))[0]


async def call(hook: Webhook, storage: Storage | None = None, clock: Clock | None = None) -> WebhookDecision:
    async with webhook_client(storage or Storage(), clock or SystemClock()) as client:
        return await Caller(client).call(hook, REQUEST, mutating=True)


async def failure(hook: Webhook, storage: Storage | None = None) -> str:
    """The text of a failed call, without what is the same in all of them."""
    with pytest.raises(CallError) as caught:
        await call(hook, storage)
    return str(caught.value).removeprefix('failed calling webhook "check.example.com": ')


def service_storage(port: int) -> Storage:
    storage = Storage()
    key = ObjectKey("system", "hook")
    metadata = {"name": "hook", "namespace": "system", "labels": {"kubernetes.io/service-name": "hook"}}
    service = {"metadata": metadata, "spec": {"type": "ClusterIP", "ports": [{"port": 443}]}}
    storage.create(Partition.of(SERVICES), key, service)
    slice_ = {"metadata": metadata, "ports": [{"port": port}], "endpoints": [{"addresses": ["127.0.0.1"]}]}
    storage.create(Partition.of(ENDPOINT_SLICES), key, slice_)
    return storage


async def test_service(tmp_path: Path) -> None:
    """A Service is called at its endpoints, by the name that its certificate has."""
    certificate = issue(tmp_path, ["hook.system.svc"], addresses=())
    async with webhook_server(tmp_path, certificate) as server:
        client = {
            "service": {"name": "hook", "namespace": "system", "path": "/check", "port": 443},
            "caBundle": certificate.ca_bundle,
        }
        assert (await call(made(server, clientConfig=client), service_storage(server.port))).allowed
        assert server.paths == ["/check?timeout=5s hook.system.svc:443"]


async def test_a_service_that_is_not_there(tmp_path: Path) -> None:
    """The error names the Service's address as in a real cluster."""
    client = {"service": {"name": "hook", "namespace": "system"}}
    server = WebhookServer(issue(tmp_path))
    assert await failure(made(server, clientConfig=client)) == (
        'failed to call webhook: Post "https://hook.system.svc:443/?timeout=5s": service "hook" not found'
    )


async def test_packed_answers_are_not_unpacked(tmp_path: Path) -> None:
    """A few bytes could be gigabytes, so none are asked for, and those that come anyway are refused as they are."""
    async with webhook_server(tmp_path) as server:
        packed = web.Response(body=gzip.compress(b" " * 50_000_000), headers={"Content-Encoding": "gzip"})
        server.answers["/check"] = responding(packed)
        text = await failure(made(server))
    assert text.startswith("received invalid webhook response: couldn't get version/kind; json parse error")


async def test_nobody_listens(tmp_path: Path) -> None:
    """The address is in the error."""
    server = WebhookServer(issue(tmp_path))
    async with listening(server, None):
        pass
    assert await failure(made(server)) == (
        f'failed to call webhook: Post "{server.url}/check?timeout=5s": connection refused'
    )


async def test_no_tls(tmp_path: Path) -> None:
    """A server that speaks plain HTTP is distinguished from one that is not trusted."""
    server = WebhookServer(issue(tmp_path))
    async with listening(server, None):
        message = await failure(made(server))
    assert message == (f'failed to call webhook: Post "{server.url}/check?timeout=5s": tls: WRONG_VERSION_NUMBER')


@pytest.mark.parametrize(
    ("names", "addresses", "days", "trusted", "message"),
    [
        pytest.param(["x.y"], [], 1, True, "IP address mismatch", id="other name"),
        pytest.param([], ["127.0.0.1"], -1, True, "certificate has expired", id="expired"),
    ],
)
async def test_certificates_that_do_not_fit(
    tmp_path: Path, names: list[str], addresses: list[str], days: int, trusted: bool, message: str
) -> None:
    """A certificate has to be trusted, current and for the host that is called."""
    certificate = issue(tmp_path, names, addresses=addresses, days=days)
    bundle = (certificate if trusted else issue(tmp_path)).ca_bundle
    async with webhook_server(tmp_path, certificate) as server:
        text = await failure(made(server, clientConfig={"url": f"{server.url}/check", "caBundle": bundle}))
    start = f'failed to call webhook: Post "{server.url}/check?timeout=5s": tls: failed to verify certificate: x509: '
    assert text.startswith(f"{start}{message}")


async def test_a_bundle_without_certificates(tmp_path: Path) -> None:
    """It is found before anything is sent."""
    async with webhook_server(tmp_path) as server:
        client = {"url": server.url, "caBundle": "bm9uc2Vuc2U="}
        assert await failure(made(server, clientConfig=client)) == (
            "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block"
        )
        assert server.requests == []


async def test_a_slow_webhook_times_out(tmp_path: Path) -> None:
    """The time limit is that of the webhook, by the clock of the server."""
    clock, asked, never = ManualClock(), asyncio.Event(), asyncio.Event()
    async with webhook_server(tmp_path) as server:

        async def answer(request: object) -> dict[str, Any]:
            asked.set()
            await never.wait()
            return {}

        server.answers["/check"] = answer
        calls = asyncio.create_task(call(made(server), clock=clock))
        await asked.wait()
        await clock.advance(4.9)
        assert not calls.done()
        await clock.advance(0.2)
        with pytest.raises(CallError, match=r'Post ".*/check\?timeout=5s": context deadline exceeded'):
            await calls


async def test_a_connection_that_was_closed_while_idle(tmp_path: Path) -> None:
    """A webhook that drops a connection is called once more on a new one."""
    async with webhook_server(tmp_path) as server:
        server.drops = 1
        assert (await call(made(server))).allowed
        assert len(server.requests) == 2
        server.drops = 2
        assert (await failure(made(server))).endswith(": Server disconnected")


async def test_a_connection_that_is_closed_while_it_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that takes no request any more is as good as one that was dropped: another one is tried once."""
    failures: list[str] = []
    write = aiohttp.BytesPayload.write_with_length

    async def fail_first(payload: aiohttp.BytesPayload, writer: Any, length: int | None) -> None:
        if not failures:
            failures.append("write")
            raise ConnectionResetError("Cannot write to closing transport")
        await write(payload, writer, length)

    async with webhook_server(tmp_path) as server:
        monkeypatch.setattr(aiohttp.BytesPayload, "write_with_length", fail_first)
        assert (await call(made(server))).allowed
    assert failures == ["write"]
