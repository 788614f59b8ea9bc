"""What one client can hold of the server, and for how long."""

from __future__ import annotations

import asyncio
import resource
import ssl
from pathlib import Path

import aiohttp
import anyio
import pytest

from packages.devcluster.tests.apiserver.http_client import Api, api_for
from trainer_devcluster.apiserver.handlers import call
from trainer_devcluster.apiserver.server import ServerOptions, serve
from trainer_devcluster.apiserver.serving import listening as module
from trainer_devcluster.apiserver.serving.listening import raise_descriptor_limit


async def exchange(api: Api, content: bytes) -> bytes:
    """What comes back until the server closes the connection."""
    context = ssl.create_default_context(cadata=api.server.ca_pem)
    port = int(api.server.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    with anyio.fail_after(10):
        writer.write(content.replace(b"TOKEN", api.server.token.encode()))
        try:
            return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()


@pytest.mark.parametrize(
    ("content", "start"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nX-Half: ", b"", id="half a header"),
        pytest.param(
            b"POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 9\r\n"
            b"Connection: close\r\n\r\n{",
            b"HTTP/1.1 504",
            id="half a body",
        ),
    ],
)
async def test_slow_clients(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes, start: bytes) -> None:
    """Who does not finish a request in time gets 408, if there is one to answer, and is disconnected."""
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(module, "LINGER_SECONDS", 0.05)
    monkeypatch.setattr(call, "BODY_SECONDS", 0.05)
    async with serve(ServerOptions(tmp_path)) as server, api_for(server) as api:
        answer = await exchange(api, content)
    assert answer.startswith(start)
    assert bool(answer) == bool(start)


async def test_too_many_connections_are_turned_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The server keeps some of its open files for other purposes than connections, and takes new ones in turn."""
    monkeypatch.setattr(module, "raise_descriptor_limit", lambda: 4)
    async with (
        serve(ServerOptions(tmp_path)) as server,
        api_for(server) as first,
        api_for(server) as second,
        api_for(server) as third,
        api_for(server) as last,
    ):
        for api in (first, second, third):
            assert (await api("GET", "/readyz")).code == 200
        assert await answers(last) is None
        await first.session.close()
        with anyio.fail_after(5):
            while await answers(last) is None:
                await anyio.lowlevel.checkpoint()


async def answers(api: Api) -> int | None:
    try:
        return (await api("GET", "/readyz")).code
    except aiohttp.ClientError:
        return None


def test_descriptor_limit() -> None:
    """The limit of open files is raised to what the system allows, never lowered."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
        raised = raise_descriptor_limit()
        assert raised == resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 256
        assert raise_descriptor_limit() == raised
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
