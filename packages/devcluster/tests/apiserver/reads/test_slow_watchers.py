"""Watchers that do not read."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from packages.devcluster.tests.apiserver.http_client import api_for
from trainer_devcluster.apiserver.handlers import read
from trainer_devcluster.apiserver.server import ServerOptions, serve

PATH = "/api/v1/namespaces/default/configmaps"


async def test_a_watcher_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It loses its connection, so that nothing is kept for it, and others go on."""
    monkeypatch.setattr(read, "SLOW_SECONDS", 0.05)
    async with serve(ServerOptions(tmp_path)) as server, api_for(server) as api:
        context = ssl.create_default_context(cadata=server.ca_pem)
        port = int(server.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, limit=1024)
        head = f"GET {PATH}?watch=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        writer.write(head.encode())
        await reader.readuntil(b"\r\n\r\n")
        for number in range(24):
            body = {"metadata": {"name": f"large-{number}"}, "data": {"x": "x" * 1_000_000}}
            assert (await api("POST", PATH, body)).code == 201
        with anyio.fail_after(20), suppress(ConnectionError, ssl.SSLError):
            while await reader.read(1 << 20):
                pass
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
        events = await api.lines(f"{PATH}?watch=1&timeoutSeconds=1")
        assert len(events) == 24 + 1
