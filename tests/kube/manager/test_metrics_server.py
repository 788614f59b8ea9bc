"""The server of metrics, over TLS on the loopback interface."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import aiohttp
import anyio
import anyio.lowlevel
import anyio.streams.tls
import anyio.to_thread
import pytest
from aiohttp import web

from tests.kube.conftest import Background
from tests.kube.reviewers import TOKEN, Reviewer
from tests.kube.webhook.serving import GivenCertificates, client_context
from trainer.kube import Clock, LeaderElectionOptions, Manager, ManagerOptions
from trainer.kube.errors import ConfigurationError, TransportError
from trainer.kube.manager.metrics_server import MetricsServer, MetricsServerOptions
from trainer.kube.metrics.controllers import ControllerMetrics
from trainer.kube.resource import LEASES
from trainer.kube.serving.certificates import CertificateSource
from trainer_kube_testing import FakeClient, ManualClock

OPTIONS = MetricsServerOptions(host="127.0.0.1", port=0)
OPEN = replace(OPTIONS, secure=False, authorize=False)
READER = {"Authorization": f"Bearer {TOKEN}"}


@dataclass
class Served:
    """A server that runs, as Prometheus sees it."""

    server: MetricsServer
    manager: Manager
    reviewer: Reviewer
    session: aiohttp.ClientSession

    async def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, str]:
        async with self.session.get(path, headers=headers) as response:
            return response.status, await response.text()

    async def sample(self, name: str, **labels: str) -> float | None:
        def read() -> float | None:
            return self.manager.metrics.registry.get_sample_value(f"trainer_kube_http_{name}", labels)

        return await anyio.to_thread.run_sync(read)


async def echo(request: web.BaseRequest) -> web.Response:
    return web.Response(text=f"asked {request.path_qs}")


@asynccontextmanager
async def serving(
    *,
    options: MetricsServerOptions = OPTIONS,
    certificates: CertificateSource | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Served]:
    """A server run by a manager; TOKEN may get /metrics and /jobs/a/b."""
    reviewer = Reviewer(allowed=(("get", "/metrics"), ("get", "/jobs/a/b"), ("get", "/nothing")))
    manager = Manager(reviewer, clock=clock)
    server = MetricsServer(manager, options, certificates=certificates)
    manager.serve("/jobs/a/b", echo)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await server.wait_for_start()
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connector = aiohttp.TCPConnector(ssl=context, force_close=True)
        scheme = "https" if options.secure else "http"
        url = f"{scheme}://127.0.0.1:{server.address[1]}"
        async with aiohttp.ClientSession(url, connector=connector) as session:
            yield Served(server, manager, reviewer, session)
        manager.stop()


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param("", "text/plain; version=0.0.4; charset=utf-8", id="any"),
        pytest.param(
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
            id="prometheus",
        ),
    ],
)
async def test_metrics(accept: str, content_type: str) -> None:
    """Prometheus gets the format that it asks for, the series of the process, and no `_created` ones."""
    async with serving(options=OPEN) as served:
        ControllerMetrics(served.manager.metrics, "c")
        response = await served.session.get("/metrics", headers={"Accept": accept})
        assert response.headers["Content-Type"] == content_type
        lines = (await response.text()).splitlines()
    assert 'controller_runtime_reconcile_errors_total{controller="c"} 0.0' in lines
    names = {line.partition(" ")[0].partition("{")[0] for line in lines if not line.startswith("#")}
    assert {
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_start_time_seconds",
        "process_virtual_memory_bytes",
    } <= names
    assert not [name for name in names if name.endswith("_created")]


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "text"),
    [
        pytest.param("GET", "/metrics", READER, 200, "process_open_fds", id="allowed"),
        pytest.param("GET", "/jobs/a/b?x=1", READER, 200, "asked /jobs/a/b?x=1", id="handler"),
        pytest.param("GET", "/nothing", READER, 404, "there is nothing at this path", id="nothing-there"),
        pytest.param("GET", "/metrics", {}, 401, "send a bearer token", id="without-token"),
        pytest.param("GET", f"/metrics?token={TOKEN}", {}, 401, "send a bearer", id="token-in-query"),
        pytest.param("GET", "/jobs/b/b", READER, 403, "prometheus may not get this path", id="not-this-one"),
        pytest.param("HEAD", "/metrics", READER, 403, "", id="who-may-get-may-not-head"),
    ],
)
async def test_access(method: str, path: str, headers: dict[str, str], status: int, text: str) -> None:
    """Only authenticated and authorized requests get an answer; others do not learn which paths exist."""
    async with serving() as served, served.session.request(method, path, headers=headers) as response:
        answer = await response.text()
        assert (response.status, text in answer) == (status, True), answer
        assert "process_open_fds" not in answer or status == 200
        # A client learns how to show who it is (RFC 6750).
        assert response.headers.get("WWW-Authenticate") == ("Bearer" if status == 401 else None)
        assert await served.sample("requests_total", server="metrics", code=str(status)) == 1


async def test_wrong_token() -> None:
    """The challenge says so (RFC 6750)."""
    wrong = {"Authorization": "Bearer x"}
    async with serving() as served, served.session.get("/metrics", headers=wrong) as response:
        assert response.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


async def test_only_reading() -> None:
    """There is nothing to write."""
    async with serving(options=OPEN) as served, served.session.post("/metrics") as response:
        assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("target", "status"),
    [
        pytest.param("/metrics", 200, id="plain"),
        pytest.param("/%6detrics", 200, id="encoded"),
        pytest.param("/./metrics", 403, id="dot"),
        pytest.param("/metrics/../jobs/b/b", 403, id="dots"),
        pytest.param("/jobs/a%2Fb", 200, id="encoded-slash"),
        pytest.param("/metrics%00", 403, id="null"),
        pytest.param("metrics", 400, id="relative"),
    ],
)
async def test_path_that_is_allowed_is_the_path_that_is_served(target: str, status: int) -> None:
    """However it is spelled, nobody gets to see what they may not."""
    async with serving() as served:
        context = client_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection(*served.server.address, ssl=context)
        writer.write(f"GET {target} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        assert int(head.split()[1]) == status, head
        assert b"Evil" not in head


@pytest.mark.parametrize("path", ["metrics", "/metrics", "/jobs/a/b"])
async def test_paths_that_cannot_be_served(path: str) -> None:
    """What could not be found, or is taken, is refused when it is added; others are served from then on."""
    async with serving(options=OPEN) as served:
        with pytest.raises(ValueError, match="begins with / and is not taken"):
            served.manager.serve(path, echo)
        served.manager.serve("/late", echo)
        assert await served.get("/late") == (200, "asked /late")


async def test_open_server_asks_nobody() -> None:
    """Without authorisation there is plain HTTP for everybody, and no review."""
    async with serving(options=OPEN) as served:
        assert (await served.get("/metrics"))[0] == 200
        assert not served.reviewer.reviews


async def test_without_certificate_the_manager_ends(clock: ManualClock, background: Background) -> None:
    """After two minutes, with what was missing; nothing else waits for it."""
    manager = Manager(FakeClient(), clock=clock)
    MetricsServer(manager, OPTIONS, certificates=GivenCertificates())

    async def run() -> str:
        with pytest.raises(ConfigurationError) as raised:
            await manager.run()
        return str(raised.value)

    running = background(run())
    await clock.advance(119)
    assert manager.is_ready
    await clock.advance(2)
    assert await running == "no certificate for metrics within 120 s: nobody has made a certificate yet"


async def test_replica_that_does_not_lead() -> None:
    """Each replica asks who the scraper is and serves its own metrics, whoever leads."""
    reviewer = Reviewer(allowed=(("get", "/metrics"),))
    reviewer.faults.fail(TransportError("down"), times=None, resource=LEASES)
    options = ManagerOptions(leader_election=LeaderElectionOptions(name="lease", namespace="ns"))
    manager = Manager(reviewer, options=options)
    server = MetricsServer(manager, replace(OPTIONS, secure=False))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        with anyio.fail_after(5):
            await server.wait_for_start()
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{server.address[1]}") as session,
            session.get("/metrics", headers=READER) as answer,
        ):
            assert answer.status == 200
        tasks.cancel_scope.cancel()
