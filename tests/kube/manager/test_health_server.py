"""The server of health checks."""

from __future__ import annotations

import errno
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anyio
import anyio.lowlevel
import pytest

from trainer.kube.clock import SystemClock
from trainer.kube.errors import ConfigurationError
from trainer.kube.manager.health import HealthChecks
from trainer.kube.manager.health_server import HealthServer
from trainer_kube_testing import ManualClock


async def fail() -> None:
    raise OSError("the database is away")


@pytest.fixture
def checks(clock: ManualClock) -> HealthChecks:
    return HealthChecks("healthz", clock=clock)


def health_server(host: str, port: int = 0, checks: Collection[HealthChecks] = ()) -> HealthServer:
    return HealthServer(host, port, checks=checks, clock=SystemClock())


@asynccontextmanager
async def serving(*checks: HealthChecks) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a running server."""
    server = health_server("127.0.0.1", checks=checks)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run)
        await server.wait_for_start()
        host, port = server.address
        async with aiohttp.ClientSession(f"http://{host}:{port}") as session:
            yield session
        tasks.cancel_scope.cancel()


FAILED = "[+]ping ok\n[-]db failed: reason withheld\nhealthz check failed\n"
EXCLUDED = "[+]ping ok\n[+]db excluded: ok\nhealthz check passed\n"
UNKNOWN = FAILED.replace("healthz", "warn: some checks cannot be excluded: no matches for 'bd'\nhealthz")


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        pytest.param("/healthz", 500, FAILED, id="all"),
        pytest.param("/healthz/", 500, FAILED, id="slash"),
        pytest.param("/healthz?exclude=db", 200, "ok", id="exclude"),
        pytest.param("/healthz?exclude=db&verbose", 200, EXCLUDED, id="exclude-verbose"),
        pytest.param("/healthz?exclude=bd", 500, UNKNOWN, id="exclude-unknown"),
        pytest.param("/healthz/ping", 200, "ok", id="one"),
        pytest.param("/healthz/db", 500, "[-]db failed: reason withheld\n", id="one-failed"),
        pytest.param("/healthz/nothing", 404, "there is no healthz check 'nothing'\n", id="unknown"),
        pytest.param("/readyz", 200, "ok", id="another-probe"),
        pytest.param("/readyz?verbose", 200, "[+]ping ok\nreadyz check passed\n", id="verbose"),
        pytest.param("/metrics", 404, "there is nothing at this path\n", id="metrics-are-elsewhere"),
    ],
)
async def test_endpoint(checks: HealthChecks, path: str, status: int, text: str) -> None:
    """Paths, parameters and texts are those of the API server; a failure lists all checks and withholds why."""
    checks.add("db", fail)
    async with serving(checks, HealthChecks("readyz")) as session, session.get(path) as response:
        assert (response.status, await response.text()) == (status, text)
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"


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
    server = health_server(host, checks=(HealthChecks("healthz"),))
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
        server = HealthServer("", port, checks=(), clock=SystemClock())
        with (
            anyio.fail_after(10),
            pytest.raises(ConfigurationError, match=r"on all addresses, port .* in use; choose another"),
        ):
            await server.run()


async def test_machine_without_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where IPv6 is switched off, all addresses are those of IPv4, whatever the resolver says."""
    create = socket.socket.__init__

    def refuse_ipv6(self: socket.socket, family: int = -1, *args: int, **options: int) -> None:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        create(self, family, *args, **options)

    monkeypatch.setattr(socket.socket, "__init__", refuse_ipv6)
    monkeypatch.setattr(socket, "getaddrinfo", resolve_both)
    server = health_server("")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run)
        await server.wait_for_start()
        assert server.address[0] == "0.0.0.0"
        tasks.cancel_scope.cancel()


def resolve_both(_host: str | None, port: int, family: int = 0, *_: int, **__: int) -> list[Any]:
    """All addresses, as on machines of which only the loopback interface is up."""
    everywhere: dict[int, Any] = {socket.AF_INET: ("0.0.0.0", port), socket.AF_INET6: ("::", port, 0, 0)}
    return [(each, socket.SOCK_STREAM, 6, "", everywhere[each]) for each in everywhere if family in {0, each}]
