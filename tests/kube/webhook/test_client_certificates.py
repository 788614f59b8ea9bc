"""Who may ask a webhook server, over TLS on the loopback interface."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio.to_thread
import msgspec
import pytest
from structlog.testing import capture_logs

from tests.kube.certificates import Authority, Pair
from tests.kube.webhook.serving import PATH, Webhook, client_context, review_of, serving
from trainer.kube.rest.tls import load_pair
from trainer.kube.serving.tls import POLL_SECONDS
from trainer.kube.webhook.admission import AdmissionRequest, AdmissionResponse
from trainer.kube.webhook.server import WebhookServerOptions
from trainer_kube_testing import ManualClock, eventually

CLIENTS = Authority("clients")
OTHERS = Authority("others")
API_SERVER = CLIENTS.issue("kube-apiserver")
NO_ANSWER = (aiohttp.ClientError, ConnectionError, ssl.SSLError)


async def allow(request: AdmissionRequest) -> AdmissionResponse:
    return AdmissionResponse.allow()


@asynccontextmanager
async def guarded(tmp_path: Path, clock: ManualClock | None = None, **options: Any) -> AsyncIterator[Webhook]:
    """A server that knows the authority of clients."""
    (tmp_path / "ca.crt").write_bytes(CLIENTS.pem)
    async with serving(allow, clock=clock, client_ca=tmp_path / "ca.crt", **options) as webhook:
        yield webhook


async def ask(webhook: Webhook, pair: Pair | None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> int:
    """The status of the answer to a client with this certificate."""
    context = client_context()
    context.maximum_version = version
    if pair is not None:
        await anyio.to_thread.run_sync(load_pair, context, pair.chain, pair.key)
    url = f"https://127.0.0.1:{webhook.port}{PATH}"
    data = msgspec.json.encode(review_of())
    connector = aiohttp.TCPConnector(ssl=context, force_close=True)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.post(url, data=data, headers={"Content-Type": "application/json"}) as answer,
    ):
        return answer.status


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_only_clients_of_the_authority_may_ask(tmp_path: Path, version: ssl.TLSVersion) -> None:
    """Strangers, and those whom others have signed, do not get through the handshake: no handler is asked."""
    async with guarded(tmp_path) as webhook:
        assert await ask(webhook, API_SERVER, version) == 200
        for pair in (None, OTHERS.issue("kube-apiserver")):
            with pytest.raises(NO_ANSWER):
                await ask(webhook, pair, version)
        assert webhook.sample("requests_total", webhook=PATH, code="200") == 1


async def test_the_authority_is_replaced(tmp_path: Path) -> None:
    """A new file counts for the next connections; while it cannot be used, the old authorities do."""
    clock, theirs = ManualClock(), OTHERS.issue("kube-apiserver")
    file = tmp_path / "ca.crt"
    async with guarded(tmp_path, clock) as webhook:
        with capture_logs() as logs:

            def reported(event: str) -> bool:
                return any(entry["event"] == event for entry in logs)

            file.write_text("nonsense")
            await clock.advance(POLL_SECONDS)
            await eventually(lambda: reported("could not use client authorities"), within=10, what="a warning")
            assert await ask(webhook, API_SERVER) == 200
            file.write_bytes(OTHERS.pem)
            await clock.advance(POLL_SECONDS)
            await eventually(lambda: reported("read client authorities"), within=10, what="the new authority")
        assert await ask(webhook, theirs) == 200
        with pytest.raises(NO_ANSWER):
            await ask(webhook, API_SERVER)


def test_names_need_an_authority() -> None:
    """Without one, clients show no certificate, and everybody would be refused."""
    with pytest.raises(ValueError, match="client_names needs client_ca"):
        WebhookServerOptions(client_names=frozenset({"kube-apiserver"}))
