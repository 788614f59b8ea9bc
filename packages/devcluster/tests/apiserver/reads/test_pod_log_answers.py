"""The pods/log endpoint through HTTPS: how its answers begin, flow and end."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import structlog
from aiohttp import web

from packages.devcluster.tests.apiserver.http_client import MERGE, Api, api_for
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.server import ServerOptions, serve
from trainer_devcluster.log_paths import log_path

PODS = "/api/v1/namespaces/default/pods"
STAMP = b"2026-01-01T00:00:01.000000001Z"
PIECE = 16 * 1024


class LoggedPod:
    """A pod whose only container's log the test writes."""

    def __init__(self, api: Api, data_dir: Path, uid: str) -> None:
        self.api = api
        self.file = log_path(data_dir, uid, "c", 0)
        self.file.parent.mkdir(parents=True)

    def write(self, *entries: tuple[bytes, bytes]) -> None:
        """Append entries, given by tag and text."""
        with self.file.open("ab") as file:
            file.write(b"".join(STAMP + b" stdout " + tag + b" " + text + b"\n" for tag, text in entries))

    async def set_state(self, state: Object) -> None:
        status = {"name": "c", "restartCount": 0, "image": "i", "imageID": "", "ready": True, "state": state}
        answer = await self.api("PATCH", f"{PODS}/p/status", {"status": {"containerStatuses": [status]}}, MERGE)
        assert answer.code == 200

    @asynccontextmanager
    async def log(self, query: str = "") -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer as soon as its headers are there."""
        headers = {"Authorization": f"Bearer {self.api.server.token}"}
        url = f"{self.api.server.url}{PODS}/p/log?{query}"
        async with asyncio.timeout(10), self.api.session.get(url, headers=headers) as response:
            yield response


async def running_pod(api: Api, data_dir: Path) -> LoggedPod:
    """A pod that runs, without a kubelet."""
    spec = {"containers": [{"name": "c", "image": "i"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    created = await api("POST", PODS, body)
    pod = LoggedPod(api, data_dir, created.body["metadata"]["uid"])
    await pod.set_state({"running": {}})
    return pod


async def test_whatever_is_printed(api: Api, tmp_path: Path) -> None:
    """A line of a megabyte, bytes that are no text and a last line without its end arrive as they are."""
    pod = await running_pod(api, tmp_path)
    garbage = os.urandom(50_000).replace(b"\n", b"")
    pod.write(
        *[(b"P", b"x" * PIECE)] * 63, (b"F", b"x" * PIECE), (b"F", garbage), (b"F", b"10 %\r20 %"), (b"P", b"end")
    )
    await pod.set_state({"terminated": {"exitCode": 0}})

    async with pod.log("timestamps=true") as answer:
        text = await answer.read()

    whole = [b"x" * (64 * PIECE) + b"\n", garbage + b"\n", b"10 %\r20 %\n", b"end"]
    assert text == b"".join(STAMP + b" " + line for line in whole)


async def test_pieces_of_a_line_that_is_being_printed(api: Api, tmp_path: Path) -> None:
    """They are sent as they come, under one time."""
    pod = await running_pod(api, tmp_path)
    async with pod.log("follow=true&timestamps=true") as answer:
        pod.write((b"P", b"half"))
        assert await answer.content.readexactly(len(STAMP) + 5) == STAMP + b" half"
        pod.write((b"F", b" and half"), (b"F", b"next"))
        assert await answer.content.readline() == b" and half\n"
        assert await answer.content.readline() == STAMP + b" next\n"


async def test_deleted_pod(api: Api, tmp_path: Path) -> None:
    """The answer ends with the pod, and after it there is none."""
    pod = await running_pod(api, tmp_path)
    pod.write((b"F", b"one"))
    async with pod.log("follow=true") as answer:
        assert await answer.content.readline() == b"one\n"
        await api("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
        assert await answer.content.read() == b""
    async with pod.log() as answer:
        assert answer.status == 404
        assert (await answer.json())["message"] == 'pods "p" not found'


async def test_stopped_server(tmp_path: Path) -> None:
    """Who follows a log when the server is stopped sees a broken answer, not one that has ended."""
    async with AsyncExitStack() as clients:
        async with serve(ServerOptions(tmp_path)) as server:
            api = await clients.enter_async_context(api_for(server))
            pod = await running_pod(api, tmp_path)
            pod.write((b"F", b"one"))
            answer = await clients.enter_async_context(pod.log("follow=true"))
            assert await answer.content.readline() == b"one\n"
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.content.read()


async def test_hanging_up_at_the_end(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A client that hangs up while the end of the answer is being sent is no failure that is logged."""
    pod = await running_pod(api, tmp_path)
    pod.write((b"F", b"one"))
    write_eof = web.StreamResponse.write_eof
    ends = []

    async def hang_up(response: web.StreamResponse, data: bytes = b"") -> None:
        request = response._req
        if request is not None and request.path.endswith("/log"):
            assert request.transport is not None
            request.transport.abort()
            ends.append(request.path)
        await write_eof(response, data)

    monkeypatch.setattr(web.StreamResponse, "write_eof", hang_up)
    with structlog.testing.capture_logs() as logs:
        async with pod.log() as answer:
            with pytest.raises(aiohttp.ClientError):
                await answer.read()
        assert (await api("GET", f"{PODS}/p")).code == 200
    assert ends
    assert [entry for entry in logs if entry["log_level"] in {"warning", "error"}] == []
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
