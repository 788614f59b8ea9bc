"""Requests on their way: attempts, pools, the rate limit and the metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from trainer.kube.errors import ConfigurationError, KubeError, TransportError, UnauthorizedError
from trainer.kube.metrics import Metrics
from trainer.kube.rest.credentials import FixedCredentials, Identity, TokenFile
from trainer.kube.rest.rate_limiter import RateLimiter
from trainer.kube.rest.request import Request
from trainer.kube.rest.retries import MAX_RETRIES, REQUESTED_RETRIES
from trainer.kube.rest.transport import Endpoint, Transport
from trainer_kube_testing import ManualClock, settle

GET = Request("GET", "/api/v1/nodes/n", {})
POST = Request("POST", "/api/v1/nodes", {}, b"{}")


class Server:
    """Answers with the next status code, the last one forever; 0 breaks the connection."""

    def __init__(self) -> None:
        self.codes = [200]
        self.retry_after: str | None = None
        self.attempts = 0
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.attempts += 1
        await request.read()
        code = self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]
        if code == 0:
            assert request.transport is not None
            request.transport.abort()
        headers = {} if self.retry_after is None else {"Retry-After": self.retry_after}
        return web.json_response({"kind": "Status"}, status=code or 200, headers=headers)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """A scripted API server."""
    scripted = Server()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", scripted.handle)
    test_server = TestServer(application)
    await test_server.start_server()
    scripted.url = f"http://127.0.0.1:{test_server.port}"
    yield scripted
    await test_server.close()


class PatientClock(ManualClock):
    """Sleeps by moving its own time; notes how long."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await self.advance(seconds)
        await super().sleep(0)


def transport(server: Server, clock: ManualClock, **more: Any) -> Transport:
    return Transport(Endpoint(server.url), FixedCredentials("Bearer t"), user_agent="trainer/test", clock=clock, **more)


@pytest.mark.parametrize(
    ("request_", "codes", "retry_after", "attempts"),
    [
        pytest.param(GET, [0, 200], None, 2, id="broken-get-is-one-more-attempt"),
        pytest.param(GET, [0], None, 1 + MAX_RETRIES, id="get-that-keeps-breaking"),
        *[
            pytest.param(Request(method, "/", {}, b"{}"), [0], None, 1, id=f"broken-{method.lower()}")
            for method in ("POST", "PUT", "PATCH", "DELETE")
        ],
        pytest.param(POST, [429, 503, 201], "1", 3, id="post-that-the-server-puts-off"),
        pytest.param(POST, [429], "1", 1 + REQUESTED_RETRIES, id="post-that-the-server-keeps-putting-off"),
        pytest.param(POST, [500, 201], "1", 2, id="500-with-retry-after"),
        pytest.param(GET, [500], None, 1, id="500"),
        pytest.param(GET, [401], None, 1, id="401-with-nothing-to-renew"),
    ],
)  # fmt: skip
async def test_each_attempt_is_sent_and_counted_once(
    server: Server, request_: Request, codes: list[int], retry_after: str | None, attempts: int
) -> None:
    """Nothing below repeats requests on its own, so what is counted is what the server saw."""
    metrics, clock = Metrics(), PatientClock()
    server.codes, server.retry_after = codes, retry_after
    async with transport(server, clock, metrics=metrics) as opened:
        with suppress(KubeError):
            await opened.fetch(request_)
    assert server.attempts == attempts
    assert len(clock.pauses) == attempts - 1
    assert total(metrics, "rest_client_requests_total") == attempts


async def test_start_of_a_stream_is_retried(server: Server) -> None:
    """A server that is not ready yet is asked again before the caller hears of it."""
    clock, server.codes, server.retry_after = PatientClock(), [503, 200], "1"
    async with transport(server, clock) as opened, opened.stream(GET) as chunks:
        assert [chunk async for chunk in chunks] == [b'{"kind": "Status"}']
    assert clock.pauses == [1]


def total(metrics: Metrics, name: str) -> float:
    """Sum of all series of this name."""
    return sum(
        sample.value for family in metrics.registry.collect() for sample in family.samples if sample.name == name
    )


def labels(metrics: Metrics, name: str) -> list[dict[str, str]]:
    return [sample.labels for family in metrics.registry.collect() for sample in family.samples if sample.name == name]


async def test_series_of_requests(server: Server) -> None:
    """Names, labels and values are those of client-go."""
    metrics, clock = Metrics(), PatientClock()
    server.codes, server.retry_after = [503, 200, 0], "2"
    limiter = RateLimiter(qps=0.5, burst=1, clock=clock)
    async with transport(server, clock, metrics=metrics, rate_limiter=limiter) as opened:
        await opened.fetch(GET)
        with pytest.raises(TransportError):
            await opened.fetch(POST)
    host = server.url.removeprefix("http://")
    assert labels(metrics, "rest_client_requests_total") == [
        {"code": "503", "method": "GET", "host": host},
        {"code": "200", "method": "GET", "host": host},
        {"code": "<error>", "method": "POST", "host": host},
    ]
    get = {"verb": "GET", "host": host}
    post = {"verb": "POST", "host": host}
    value = metrics.registry.get_sample_value
    assert value("rest_client_request_duration_seconds_count", get) == 1
    assert value("rest_client_request_duration_seconds_sum", get) == 2
    assert value("rest_client_request_duration_seconds_count", post) == 1


async def test_each_attempt_passes_the_rate_limit(server: Server, clock: ManualClock, background: Background) -> None:
    """Requests beyond the burst wait their turn, a stream only when it is opened; a long wait is logged."""
    limiter = RateLimiter(qps=0.5, burst=2, clock=clock)
    async with transport(server, clock, rate_limiter=limiter) as opened, opened.stream(GET) as chunks:
        await opened.fetch(GET)
        late = background(opened.fetch(GET))
        await settle()
        assert [chunk async for chunk in chunks] == [b'{"kind": "Status"}']
        assert server.attempts == 2
        with capture_logs() as logs, anyio.fail_after(10):
            await clock.advance(2)
            await late
    assert server.attempts == 3
    assert [entry["event"] for entry in logs] == ["waited for the client's rate limit"]


async def test_cancelled_request_is_no_failure(server: Server, clock: ManualClock) -> None:
    """It is neither counted as an attempt without an answer nor repeated."""
    metrics = Metrics()
    server.codes, server.retry_after = [429], "10"
    async with transport(server, clock, metrics=metrics) as opened, anyio.create_task_group() as tasks:
        tasks.start_soon(opened.fetch, GET)
        with anyio.fail_after(10):
            while not clock.sleeping:
                await settle()
        tasks.cancel_scope.cancel()
    assert [label["code"] for label in labels(metrics, "rest_client_requests_total")] == ["429"]


class NoCredentials(FixedCredentials):
    """Credentials of a plugin that fails, at the start or later."""

    fails = True

    async def current(self) -> Identity:
        if self.fails:
            raise ConfigurationError("run login")
        return await super().current()


async def test_failing_credentials(server: Server, clock: ManualClock) -> None:
    """They are found when the transport is opened; if they fail later, the request fails and nothing is sent."""
    credentials = NoCredentials()
    with pytest.raises(ConfigurationError, match="run login"):
        await Transport(Endpoint(server.url), credentials, user_agent="t", clock=clock).__aenter__()
    credentials.fails = False
    async with Transport(Endpoint(server.url), credentials, user_agent="t", clock=clock) as opened:
        credentials.fails = True
        with pytest.raises(ConfigurationError, match="run login"):
            await opened.fetch(GET)
    assert server.attempts == 0


async def test_credentials_that_fit_no_header(server: Server, clock: ManualClock, tmp_path: Path) -> None:
    """A token of several lines is named as what it is, at the start and later, and not shown."""
    token = tmp_path / "token"
    await anyio.Path(token).write_text("secret\nsecret")
    credentials = TokenFile(token, clock=clock)
    with pytest.raises(ConfigurationError, match=f"no HTTP header may have: the token in {token}") as raised:
        await Transport(Endpoint(server.url), credentials, user_agent="t", clock=clock).__aenter__()
    assert "secret" not in str(raised.value)
    await anyio.Path(token).write_text("one")
    credentials = TokenFile(token, clock=clock)
    async with Transport(Endpoint(server.url), credentials, user_agent="t", clock=clock) as opened:
        await anyio.Path(token).write_text("secret\nsecret")
        await clock.advance(60)
        with pytest.raises(ConfigurationError, match="line breaks"):
            await opened.fetch(GET)
    assert server.attempts == 0


@pytest.mark.parametrize(
    ("retry_after", "level"), [pytest.param("1", "debug", id="short"), pytest.param("30", "info", id="long")]
)
async def test_long_pauses_are_reported(server: Server, retry_after: str, level: str) -> None:
    """Whoever wonders why nothing happens sees what the server said, and for how long it is left alone."""
    server.codes, server.retry_after = [429, 200], retry_after
    with capture_logs() as logs:
        async with transport(server, PatientClock()) as opened:
            await opened.fetch(GET)
    [entry] = logs
    assert (entry["event"], entry["log_level"], entry["pause"]) == ("retrying request", level, float(retry_after))
    assert "429" in entry["error"]


async def test_unauthorized_keeps_what_the_server_said(server: Server, clock: ManualClock) -> None:
    """The message is ours, the Status stays the server's."""
    server.codes = [401]
    async with transport(server, clock) as opened:
        with pytest.raises(UnauthorizedError, match="does not accept the credentials: none, or those of") as raised:
            await opened.fetch(GET)
    assert raised.value.status == {"kind": "Status"}
    assert raised.value.code == 401


async def test_proxy_gets_the_requests(server: Server, clock: ManualClock) -> None:
    """A plain-HTTP server is asked through the proxy by its whole URL."""
    endpoint = Endpoint("http://cluster.example:6443", proxy=server.url)
    async with Transport(endpoint, FixedCredentials(), user_agent="t", clock=clock) as opened:
        assert await opened.fetch(GET) == b'{"kind": "Status"}'
    assert server.attempts == 1
