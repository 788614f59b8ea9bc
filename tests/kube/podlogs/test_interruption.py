"""Why a log is asked for again, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from trainer.kube.backoff import Backoff
from trainer.kube.clock import SystemClock
from trainer.kube.errors import ApiError, TransportError
from trainer.kube.podlogs.container_log import (
    ContainerLog,
    ContainerLogOptions,
    Interrupted,
    Interruption,
    Pauses,
    interruption_of,
)
from trainer.kube.rest.credentials import FixedCredentials
from trainer.kube.rest.http import HttpClient
from trainer.kube.rest.transport import Endpoint, Transport
from trainer_kube_testing import eventually, statuses

if TYPE_CHECKING:
    from tests.kube.conftest import Background


def timeout() -> TransportError:
    error = TransportError("timed out")
    error.__cause__ = TimeoutError()
    return error


@pytest.mark.parametrize(
    ("error", "was_connected", "kind"),
    [
        pytest.param(TransportError("reset"), True, Interruption.BROKEN, id="broken"),
        pytest.param(TransportError("refused"), False, Interruption.BROKEN, id="refused"),
        pytest.param(timeout(), True, Interruption.SILENT, id="silent"),
        pytest.param(timeout(), False, Interruption.BROKEN, id="never connected"),
        pytest.param(statuses.bad_request("waiting to start"), False, Interruption.WAITING, id="400"),
        pytest.param(statuses.failure(401, "Unauthorized", "no"), False, Interruption.REFUSED, id="401"),
        pytest.param(statuses.failure(403, "Forbidden", "no"), False, Interruption.REFUSED, id="403"),
        pytest.param(statuses.failure(404, "NotFound", "no"), False, Interruption.ABSENT, id="404"),
        pytest.param(statuses.expired(), False, Interruption.GONE, id="410"),
        pytest.param(statuses.too_many_requests(), False, Interruption.THROTTLED, id="429"),
        pytest.param(statuses.internal_error(), False, Interruption.FAILED, id="500"),
        pytest.param(statuses.failure(502, "", "no route to host"), False, Interruption.FAILED, id="502"),
        pytest.param(statuses.unavailable(), False, Interruption.FAILED, id="503"),
    ],
)
def test_kinds(error: TransportError | ApiError, was_connected: bool, kind: Interruption) -> None:
    """Each failure is of one of a few kinds."""
    assert interruption_of(error, was_connected=was_connected) is kind


@pytest.mark.parametrize(
    ("proofs", "pauses"),
    [
        pytest.param([0, 0, 0, 0, 0], [1, 2, 4, 8, 8], id="failures"),
        pytest.param([0, 0, 5, 0], [1, 2, 1, 2], id="a stream that lasted longer than the pause"),
        pytest.param([0, 0, 2, 0], [1, 2, 4, 8], id="a stream that lasted no longer"),
    ],
)
def test_pauses(proofs: list[float], pauses: list[float]) -> None:
    """Pauses double until reading has worked for longer than the last one."""
    under_test = Pauses(Backoff(initial=1, maximum=8))
    assert [under_test.after(None, proof) for proof in proofs] == pauses


@pytest.mark.parametrize(
    ("error", "pause"),
    [
        pytest.param(statuses.too_many_requests(7), 8, id="429"),
        pytest.param(statuses.unavailable(7), 8, id="503"),
        pytest.param(statuses.too_many_requests(None), 1, id="429 without Retry-After"),
        pytest.param(statuses.unavailable(3600), 61, id="an hour"),
    ],
)
def test_what_the_server_asks_for(error: ApiError, pause: float) -> None:
    """The pause comes on top of what the server asks for, of which a minute is granted."""
    assert Pauses(Backoff(initial=1, maximum=8)).after(error, 0) == pause


@pytest.mark.parametrize("pace", [pytest.param(0, id="at once"), pytest.param(0.01, id="paced")])
async def test_silence_on_the_wire(pace: float, background: Background) -> None:
    """A connection whose other end says nothing is given up after the idle timeout, and the log goes on."""
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
        options = ContainerLogOptions(idle_timeout=0.2, pace=pace, retry=Backoff(initial=0.01, maximum=0.01))
        container_log = ContainerLog(client, "ns", "p", "c", clock=SystemClock(), options=options)

        async def follow() -> None:
            async for event in container_log.follow(lambda: len(blocks) > 1):
                if isinstance(event, Interrupted):
                    reasons.append(event.reason)
                else:
                    blocks.append(event)

        await eventually(background(follow()).done)
    assert reasons[0] == "silent"
    assert [block.partition(b" ")[2] for block in blocks] == [b"one\n", b"two\n"]
