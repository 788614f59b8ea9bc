"""`python -m benchmarks.devcluster_watchers`: many watchers of one resource on the API server of the dev cluster.

The server is a process of its own. Each watcher is a TLS connection of this process that looks for the time of writing
in every line, so that what it costs to read the events is paid here; on two cores the two processes compete for little
more than that. With `--stalled` some watchers stop reading after their first event.
"""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import anyio
import typer
import yaml
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSStream
from rich.console import Console
from rich.table import Table

_PATH = "/api/v1/namespaces/default/configmaps"
_MARK = b'"sent":"'
_READY = "cluster ready: "
_MAX_LINE = 1 << 20
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class _Server:
    process: subprocess.Popen[str]
    host: str
    port: int
    token: str
    context: ssl.SSLContext

    def memory(self) -> int:
        """Resident bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def connect(self) -> TLSStream:
        return await anyio.connect_tcp(self.host, self.port, ssl_context=self.context, tls_standard_compatible=False)

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.token}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass(slots=True)
class _Counts:
    expected: int
    delivered: int = 0
    latencies: list[float] = field(default_factory=list)
    done: anyio.Event = field(default_factory=anyio.Event)

    def count(self, line: bytes) -> None:
        start = line.index(_MARK) + len(_MARK)
        self.latencies.append(time.monotonic() - float(line[start : line.index(b'"', start)]))
        self.delivered += 1
        if self.delivered >= self.expected:
            self.done.set()


@dataclass(frozen=True, slots=True)
class _Load:
    watchers: int
    stalled: int
    events: int
    rate: float
    writers: int
    payload: int


def main(  # noqa: PLR0917 - the command line
    watchers: Annotated[int, typer.Option(min=1, help="Watchers that read.")] = 200,
    stalled: Annotated[int, typer.Option(min=0, help="Watchers that do not.")] = 0,
    events: Annotated[int, typer.Option(min=1, help="Objects that are created.")] = 500,
    rate: Annotated[float, typer.Option(min=0, help="Creations a second; 0: as fast as possible.")] = 20,
    writers: Annotated[int, typer.Option(min=1, help="Connections that create.")] = 8,
    payload: Annotated[int, typer.Option(min=0, help="Bytes of data in an object.")] = 1000,
    data_dir: Annotated[bool, typer.Option(help="Whether the server keeps a journal.")] = False,
) -> None:
    """Measure how events reach many watchers."""
    with tempfile.TemporaryDirectory() as directory, _running(Path(directory), journal=data_dir) as process:
        try:
            server = _connected(Path(directory), process)
            anyio.run(_measure, server, _Load(watchers, stalled, events, rate, writers, payload))
        finally:
            process.terminate()


def _running(directory: Path, *, journal: bool) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "trainer_devcluster", "--no-kubelet", "--kubeconfig", str(directory / "config")]
    if journal:
        command += ["--data-dir", str(directory / "data")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _connected(directory: Path, process: subprocess.Popen[str]) -> _Server:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith(_READY):
        raise RuntimeError("the dev cluster has not started")
    url = urlsplit(line.removeprefix(_READY).split()[0])
    config = yaml.safe_load((directory / "config").read_text())
    authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
    context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
    assert url.hostname is not None
    assert url.port is not None
    return _Server(process, url.hostname, url.port, config["users"][0]["user"]["token"], context)


async def _measure(server: _Server, load: _Load) -> None:
    counts = _Counts(load.watchers * load.events)
    async with anyio.create_task_group() as tasks:
        for _ in range(load.watchers):
            await tasks.start(_watch, server, counts)
        for _ in range(load.stalled):
            await tasks.start(_stall, server)
        await anyio.sleep(1)
        memory, cpu, start = server.memory(), server.cpu_seconds(), time.monotonic()
        peak = await _write_all(server, load)
        with anyio.fail_after(300):
            await counts.done.wait()
        elapsed = time.monotonic() - start
        _report(counts, elapsed, server.cpu_seconds() - cpu, memory, max(peak, server.memory()))
        tasks.cancel_scope.cancel()


async def _watch(server: _Server, counts: _Counts, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    async with await server.connect() as stream:
        await stream.send(server.request("GET", f"{_PATH}?watch=1&timeoutSeconds=3600&resourceVersion=0"))
        lines = BufferedByteReceiveStream(stream)
        await lines.receive_until(b"\r\n\r\n", _MAX_LINE)
        task_status.started()
        while True:
            line = await lines.receive_until(b"\n", _MAX_LINE)
            if _MARK in line:
                counts.count(line)


async def _stall(server: _Server, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    async with await server.connect() as stream:
        await stream.send(server.request("GET", f"{_PATH}?watch=1&timeoutSeconds=3600&resourceVersion=0"))
        await stream.receive(10)
        task_status.started()
        await anyio.sleep_forever()


async def _write_all(server: _Server, load: _Load) -> int:
    """Create the objects; returns the greatest memory that was seen."""
    numbers, payload = iter(range(load.events)), "x" * load.payload
    start, peak = time.monotonic(), 0

    async def write() -> None:
        nonlocal peak
        async with await server.connect() as stream:
            answers = BufferedByteReceiveStream(stream)
            for number in numbers:
                if load.rate:
                    await anyio.sleep(max(start + number / load.rate - time.monotonic(), 0))
                data = {"sent": str(time.monotonic()), "payload": payload}
                body = {"metadata": {"name": f"event-{number}"}, "data": data}
                await stream.send(server.request("POST", _PATH, json.dumps(body).encode()))
                head = await answers.receive_until(b"\r\n\r\n", _MAX_LINE)
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                assert length is not None
                await answers.receive_exactly(int(length[1]))
                peak = max(peak, server.memory())

    async with anyio.create_task_group() as tasks:
        for _ in range(load.writers):
            tasks.start_soon(write)
    return peak


def _report(counts: _Counts, elapsed: float, cpu: float, before: int, peak: int) -> None:
    latencies = sorted(counts.latencies)
    table = Table("", "", show_header=False)
    table.add_row("events delivered a second", f"{counts.delivered / elapsed:,.0f}")
    table.add_row("CPU of the server for one delivery", f"{cpu / counts.delivered * 1e6:.0f} µs")
    for share in (0.5, 0.99):
        latency = latencies[min(int(len(latencies) * share), len(latencies) - 1)]
        table.add_row(f"write to arrival, p{share * 100:.0f}", f"{latency * 1000:.0f} ms")
    table.add_row("server memory, watched and idle", f"{before / _MB:.0f} MB")
    table.add_row("server memory, peak", f"{peak / _MB:.0f} MB")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
