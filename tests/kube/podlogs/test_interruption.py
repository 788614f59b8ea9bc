"""A log that is read over a socket."""

from __future__ import annotations

import anyio
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.kube.conftest import Background
from trainer.kube.backoff import Backoff
from trainer.kube.clock import SystemClock
from trainer.kube.podlogs import container_log
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions, Interrupted
from trainer.kube.rest.credentials import FixedCredentials
from trainer.kube.rest.http import HttpClient
from trainer.kube.rest.transport import Endpoint, Transport
from trainer_kube_testing import eventually


@pytest.mark.parametrize("pace", [pytest.param(0, id="at once"), pytest.param(0.01, id="paced")])
async def test_silence_on_the_wire(pace: float, background: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection whose other end says nothing is given up after the idle timeout, and the log goes on."""
    monkeypatch.setattr(container_log, "RETRY", Backoff(initial=0.01, maximum=0.01))
    log = b"2026-01-01T00:00:00.000000000Z one\n"
    reasons: list[str] = []
    blocks: list[bytes] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(log)
        if not reasons:
            await anyio.sleep_forever()
        await response.write(b"2026-01-01T00:00:01.000000000Z two\n")
        return response

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    async with (
        TestServer(application) as server,
        Transport(Endpoint(str(server.make_url(""))), FixedCredentials(), user_agent="test") as transport,
    ):
        client = HttpClient(transport)
        options = ContainerLogOptions(idle_timeout=0.2, pace=pace)
        log_of_container = ContainerLog(client, "ns", "p", "c", clock=SystemClock(), options=options)

        async def follow() -> None:
            async for event in log_of_container.follow(lambda: len(blocks) > 1):
                if isinstance(event, Interrupted):
                    reasons.append(event.reason)
                else:
                    blocks.append(event)

        await eventually(background(follow()).done)
    assert reasons[0] == "silent"
    assert [block.partition(b" ")[2] for block in blocks] == [b"one\n", b"two\n"]
