"""`python -m benchmarks.dashboard`: the dashboard of a cluster with thousands of TrainJobs, in fifty browsers at once.

A dev cluster without pods and `trainer dashboard-server` are processes of their own. Each page belongs to another user,
whose token and rights are reviewed. A few pages are in a headless Chromium; the others are event streams that this
process reads as the page does. All share the machine, so times are those of a busy one.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import aiohttp
import anyio
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.child import Child, child, dev_cluster
from benchmarks.watching.cluster import BusyCluster, name_of
from benchmarks.watching.pages import Arrivals, BrowserPage, browsers, follow_list
from trainer.kube.rest.connection import ConnectionOptions, connect

_SERVING = re.compile(r'"server": ?"dashboard".*?"address": ?"([^"]+)"|"address": ?"([^"]+)".*?"server": ?"dashboard"')
_READY = re.compile(r'"server": ?"health".*?"address": ?"([^"]+)"|"address": ?"([^"]+)".*?"server": ?"health"')
_START_TIMEOUT = 120.0
_IDLE_SECONDS = 10.0
_POLL = 0.1
_SETTLE = 2.0


@dataclass(frozen=True, slots=True)
class Load:
    """How much is put to the dashboard."""

    jobs: int
    pages: int
    in_browsers: int
    changes: int
    rate: float


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    numbers: dict[str, str] = field(default_factory=dict)

    def seconds(self, name: str, values: Sequence[float]) -> None:
        """Median and worst of some times."""
        if values:
            ordered = sorted(values)
            p99 = ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)]
            self.numbers[name] = f"{ordered[len(ordered) // 2]:.3f} s, p99 {p99:.3f} s"

    def memory(self, name: str, number: int) -> None:
        """An amount of memory."""
        self.numbers[name] = f"{number / 2**20:.0f} MiB"


def main(
    jobs: Annotated[int, typer.Option(min=1, help="TrainJobs.")] = 5000,
    pages: Annotated[int, typer.Option(min=1, help="Pages that are open, those in browsers included.")] = 50,
    in_browsers: Annotated[int, typer.Option("--browsers", min=0, help="Pages in a headless Chromium.")] = 3,
    changes: Annotated[int, typer.Option(min=1, help="Changes of TrainJobs.")] = 200,
    rate: Annotated[float, typer.Option(min=0.1, help="Changes a second.")] = 10,
) -> None:
    """Measure the dashboard of a cluster."""
    load = Load(jobs, pages, min(in_browsers, pages), changes, rate)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        with dev_cluster(directory) as (kubeconfig, _):
            tokens = anyio.run(_prepare, kubeconfig, load)
            options = ["--plain-http", "--host", "127.0.0.1", "--port", "0", "--health-port", "0"]
            command = [sys.executable, "-m", "trainer.cli", "dashboard-server", *options]
            began = time.monotonic()
            command += ["--kubeconfig", str(kubeconfig)]
            with child("dashboard", command, directory, ready='"dashboard"') as measured:
                outcome = anyio.run(_measure, kubeconfig, measured, tokens, load, began)
    _show(outcome, load)


async def _prepare(kubeconfig: Path, load: Load) -> list[str]:
    async with connect(ConnectionOptions(kubeconfig=kubeconfig)) as client:
        cluster = BusyCluster(client)
        await cluster.fill(load.jobs)
        return await cluster.tokens(load.pages)


async def _measure(kubeconfig: Path, server: Child, tokens: list[str], load: Load, began: float) -> Outcome:
    outcome, arrivals = Outcome(), Arrivals()
    address = await _wait_until_ready(server)
    outcome.numbers["from the start of the process until it is ready"] = f"{time.monotonic() - began:.1f} s"
    outcome.memory("memory, ready", server.resident_bytes())
    async with (
        connect(ConnectionOptions(kubeconfig=kubeconfig)) as client,
        # Outside of the task group, whose end cancels what is in it: Playwright must not be cancelled while it stops.
        AsyncExitStack() as stack,
        anyio.create_task_group() as tasks,
    ):
        pages: list[BrowserPage] = []
        if load.in_browsers:
            try:
                pages = await stack.enter_async_context(browsers(address, tokens[: load.in_browsers], load.jobs))
            except RuntimeError as error:
                outcome.numbers["pages in browsers"] = f"not measured: {error}"
        outcome.seconds("browser, navigation to first paint", [page.paint for page in pages])
        outcome.seconds("browser, navigation to all TrainJobs listed", [page.listed for page in pages])
        cpu, opened = server.cpu_seconds(), []

        async def open_stream(token: str) -> None:
            opened.append(await tasks.start(follow_list, address, token, load.jobs, arrivals))

        async with anyio.create_task_group() as opening:
            for token in tokens[len(pages) :]:
                opening.start_soon(open_stream, token)
        outcome.seconds(f"{len(opened)} streams opened at once, until all rows are there", opened)
        outcome.numbers["CPU of the server for one of them"] = f"{(server.cpu_seconds() - cpu) / len(opened):.3f} s"
        await _measure_changes(BusyCluster(client), server, load, outcome, arrivals=arrivals, pages=pages)
        outcome.memory("memory, peak", server.resident_bytes("VmHWM"))
        tasks.cancel_scope.cancel()
    return outcome


async def _wait_until_ready(server: Child) -> str:
    """The address of the page, once /readyz says that all TrainJobs are known."""
    with anyio.fail_after(_START_TIMEOUT):
        async with aiohttp.ClientSession() as session:
            while True:
                text = await anyio.Path(server.log).read_text()
                page, health = _SERVING.search(text), _READY.search(text)
                if page and health:
                    async with session.get(f"http://{health[1] or health[2]}/readyz") as answer:
                        if answer.status == 200:
                            return f"http://{page[1] or page[2]}"
                await anyio.sleep(_POLL)


async def _measure_changes(
    cluster: BusyCluster,
    server: Child,
    load: Load,
    outcome: Outcome,
    *,
    arrivals: Arrivals,
    pages: Sequence[BrowserPage],
) -> None:
    await anyio.sleep(_SETTLE)
    outcome.memory(f"memory, {load.pages} pages open", server.resident_bytes())
    cpu = server.cpu_seconds()
    await anyio.sleep(_IDLE_SECONDS)
    outcome.numbers["CPU of the server while nothing changes"] = f"{(server.cpu_seconds() - cpu) / _IDLE_SECONDS:.1%}"
    cpu, start, percentages = server.cpu_seconds(), time.monotonic(), Counter[int]()
    shown: list[float] = []
    for change in range(load.changes):
        await anyio.sleep(max(start + change / load.rate - time.monotonic(), 0))
        # Each tenth change is that of the TrainJob which the browsers show.
        number = 0 if change % 10 == 0 else change % load.jobs
        percentages[number] += 1
        written = arrivals.written[name_of(number), percentages[number]] = time.time()
        await cluster.report(number, percentages[number])
        if number == 0:
            async with anyio.create_task_group() as tasks:
                for page in pages:
                    tasks.start_soon(_note, page, percentages[number], written, shown)
    elapsed = time.monotonic() - start
    await anyio.sleep(_SETTLE)
    expected = load.changes * (load.pages - len(pages))
    outcome.seconds("from a change to an open stream", arrivals.latencies)
    outcome.numbers["arrived"] = f"{len(arrivals.latencies):,} of {expected:,}"
    outcome.seconds("from a change to what a browser shows", shown)
    outcome.numbers["CPU of the server for a change"] = f"{(server.cpu_seconds() - cpu) / load.changes * 1000:.1f} ms"
    outcome.numbers["changes a second"] = f"{load.changes / elapsed:.1f}"


async def _note(page: BrowserPage, percentage: int, written: float, shown: list[float]) -> None:
    shown.append(await page.wait_for(percentage) - written)


def _show(outcome: Outcome, load: Load) -> None:
    console = Console()
    cpus, busy = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    pages = f"{load.pages} pages, {load.in_browsers} of them in Chromium"
    console.print(f"{load.jobs} TrainJobs, {pages}; {cpus} CPUs, load {busy:.1f}", highlight=False)
    table = Table("", "", show_header=False)
    for name, value in outcome.numbers.items():
        table.add_row(name, value)
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
