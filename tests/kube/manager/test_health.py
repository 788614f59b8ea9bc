"""Health checks and the endpoint that serves them."""

from __future__ import annotations

import errno
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from trainer.kube.manager.health import HealthChecks, HealthServer
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.controllers import ControllerSeries
from trainer.kube.metrics.exposition import Exposition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.kube.conftest import Background
    from trainer.kube.testing import ManualClock


async def pass_() -> None:
    """Nothing is wrong."""


async def fail() -> None:
    raise OSError("the database is away")


@pytest.fixture
def checks(clock: ManualClock) -> HealthChecks:
    return HealthChecks("healthz", clock=clock)


@pytest.mark.parametrize(
    ("failing", "exclude", "verbose", "passed", "text"),
    [
        pytest.param(False, [], False, True, "ok", id="ok"),
        pytest.param(False, [], True, True, "[+]ping ok\n[+]db ok\nhealthz check passed\n", id="ok-verbose"),
        pytest.param(
            True, [], False, False, "[+]ping ok\n[-]db failed: reason withheld\nhealthz check failed\n", id="failed"
        ),
        pytest.param(True, ["db"], False, True, "ok", id="excluded"),
        pytest.param(
            True, ["db"], True, True, "[+]ping ok\n[+]db excluded: ok\nhealthz check passed\n", id="excluded-verbose"
        ),
        pytest.param(
            False,
            ["bd"],
            True,
            True,
            "[+]ping ok\n[+]db ok\nwarn: some checks cannot be excluded: no matches for 'bd'\nhealthz check passed\n",
            id="unknown-exclusion",
        ),
    ],
)
async def test_report(
    checks: HealthChecks, failing: bool, exclude: list[str], verbose: bool, passed: bool, text: str
) -> None:
    """Texts are those of the Kubernetes API server; a failure lists all checks and withholds why."""
    checks.add("db", fail if failing else pass_)
    assert await checks.report(exclude, verbose=verbose) == (passed, text)


async def test_changes_are_logged_with_the_reason(checks: HealthChecks) -> None:
    """The log tells why, once when it begins and once when it is over."""
    is_failing = True

    async def check() -> None:
        if is_failing:
            await fail()

    checks.add("db", check)
    with capture_logs() as logs:
        for is_failing in (True, True, False, False):  # noqa: B007 - read by the check
            await checks.failures()
    assert [(entry["event"], entry.get("reason")) for entry in logs] == [
        ("health check failed", "the database is away"),
        ("health check passes again", None),
    ]


async def test_check_that_hangs_fails(checks: HealthChecks, clock: ManualClock, background: Background) -> None:
    """A check has five seconds, and does not keep others from being heard."""
    checks.add("db", anyio.sleep_forever)
    running = background(checks.failures())
    await clock.advance(4.9)
    assert not running.done()
    await clock.advance(0.2)
    assert await running == {"db": "no answer within 5 s"}


@pytest.mark.parametrize("name", ["ping", "", "a/b"])
def test_names_must_be_usable(checks: HealthChecks, name: str) -> None:
    """They become part of a path, and are unique."""
    with pytest.raises(ValueError, match="check"):
        checks.add(name, pass_)


@asynccontextmanager
async def serving(*checks: HealthChecks, metrics: Metrics | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a running server."""
    server = HealthServer("127.0.0.1", 0, checks=checks, metrics=Exposition(metrics or Metrics()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run)
        await server.wait_for_start()
        host, port = server.address
        async with aiohttp.ClientSession(f"http://{host}:{port}") as session:
            yield session
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        pytest.param("/healthz", 500, "[-]db failed: reason withheld\n", id="all"),
        pytest.param("/healthz/", 500, "[-]db failed: reason withheld\n", id="slash"),
        pytest.param("/healthz?verbose", 500, "[+]ping ok\n", id="verbose"),
        pytest.param("/healthz?exclude=db", 200, "ok", id="exclude"),
        pytest.param("/healthz?exclude=db&verbose", 200, "[+]db excluded: ok\n", id="exclude-verbose"),
        pytest.param("/healthz/ping", 200, "ok", id="one"),
        pytest.param("/healthz/db", 500, "[-]db failed: reason withheld\n", id="one-failed"),
        pytest.param("/healthz/nothing", 404, "there is no healthz check 'nothing'", id="unknown"),
        pytest.param("/readyz", 200, "ok", id="another-probe"),
        pytest.param("/livez", 404, "", id="unknown-probe"),
    ],
)
async def test_endpoint(checks: HealthChecks, path: str, status: int, text: str) -> None:
    """Each check has a sub-path; parameters work as on the API server."""
    checks.add("db", fail)
    async with serving(checks, HealthChecks("readyz")) as session, session.get(path) as response:
        assert response.status == status
        body = await response.text()
        assert text in body
        assert "database" not in body
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"


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
    metrics = Metrics()
    metrics.series(ControllerSeries).for_controller("c")
    async with serving(metrics=metrics) as session, session.get("/metrics", headers={"Accept": accept}) as response:
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


def test_created_series_of_others_are_left_alone() -> None:
    """They are filtered out here, and not by the switch of the whole process."""
    from prometheus_client import CollectorRegistry, Counter, generate_latest

    metrics = Metrics()
    Exposition(metrics).render("")
    registry = CollectorRegistry()
    Counter("mine", "Of the application.", registry=registry)
    assert b"mine_created" in generate_latest(registry)


def test_two_expositions_of_the_same_metrics() -> None:
    """The series of the process are there once."""
    metrics = Metrics()
    Exposition(metrics)
    body, _ = Exposition(metrics).render("")
    assert body.count(b"\nprocess_open_fds ") == 1


def has_ipv6() -> bool:
    """Whether this machine has an IPv6 loopback address."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


HAS_IPV6 = has_ipv6()


@pytest.mark.parametrize(
    ("host", "reached_as"),
    [
        pytest.param("", ["127.0.0.1", "[::1]"], id="all"),
        pytest.param("::1", ["[::1]"], id="ipv6", marks=pytest.mark.skipif(not HAS_IPV6, reason="no IPv6 here")),
        pytest.param("127.0.0.1", ["127.0.0.1"], id="ipv4"),
    ],
)
async def test_addresses(host: str, reached_as: list[str]) -> None:
    """Without a host it listens on all addresses, those of IPv6 included: pods may have no other."""
    server = HealthServer(host, 0, checks=(HealthChecks("healthz"),), metrics=Exposition(Metrics()))
    async with anyio.create_task_group() as tasks, aiohttp.ClientSession() as session:
        tasks.start_soon(server.run)
        await server.wait_for_start()
        for address in reached_as if HAS_IPV6 else set(reached_as) - {"[::1]"}:
            async with session.get(f"http://{address}:{server.address[1]}/healthz") as response:
                assert response.status == 200
        tasks.cancel_scope.cancel()


@pytest.mark.skipif(not HAS_IPV6, reason="no IPv6 here")
async def test_port_in_use_for_ipv6() -> None:
    """A port that is free for IPv4 only is in use: half of the probes would reach somebody else."""
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
        port = taken.getsockname()[1]
        server = HealthServer("", port, checks=(), metrics=Exposition(Metrics()))
        with anyio.fail_after(10), pytest.raises(OSError, match="in use"):
            await server.run()


async def test_machine_without_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where IPv6 is switched off, all addresses are those of IPv4."""
    create_server = socket.create_server

    def refuse_ipv6(address: tuple[str, int], *, family: int = socket.AF_INET, **options: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        return create_server(address, family=family, **options)

    monkeypatch.setattr(socket, "create_server", refuse_ipv6)
    server = HealthServer("", 0, checks=(), metrics=Exposition(Metrics()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run)
        await server.wait_for_start()
        assert server.address[0] == "0.0.0.0"
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("turns", range(8))
async def test_cancellation_while_it_starts(turns: int, unused_tcp_port: int) -> None:
    """Whenever it is cancelled, the port is free afterwards."""
    server = HealthServer("127.0.0.1", unused_tcp_port, checks=(), metrics=Exposition(Metrics()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    socket.create_server(("127.0.0.1", unused_tcp_port)).close()


async def test_port_in_use() -> None:
    """The error names the address."""
    server = HealthServer("127.0.0.1", 0, checks=(), metrics=Exposition(Metrics()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run)
        await server.wait_for_start()
        second = HealthServer(*server.address, checks=(), metrics=Exposition(Metrics()))
        with pytest.raises(OSError, match=str(server.address[1])):
            await second.run()
        tasks.cancel_scope.cancel()
