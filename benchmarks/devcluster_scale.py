"""`python -m benchmarks.devcluster_scale`: a thousand TrainJobs of two pods each on a dev cluster whose pods are fake.

A dev cluster and a controller manager run as processes of their own. All TrainJobs are created, and it is measured how
long it takes until every one of them is Complete, what the API server has written for that, and what both processes
take of memory and processors.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import anyio
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.child import Child, child
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.installation import install_definitions, install_runtimes
from trainer.configuration.configuration import Configuration, render_configuration
from trainer.kube.client import Client, ListOptions
from trainer.kube.objects import Object
from trainer.kube.resource import EVENTS, PODS
from trainer.kube.rest.connection import ConnectionOptions, connect

NAMESPACE = "default"
_CREATORS = 8
_POLL = 1.0


@dataclass(slots=True)
class Usage:
    """What a process has taken."""

    name: str
    idle: int
    after: int
    peak: int
    cpu_seconds: float


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    seconds_to_create: float
    seconds: float
    """From the first TrainJob until all are Complete."""
    complete: int
    failed: int
    writes: int
    """That the API server has stored, by its resource versions."""
    events: int
    """How many of them were events that are there in the end."""
    usages: list[Usage]


def train_job(index: int, nodes: int) -> Object:
    """One of the TrainJobs."""
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {"name": f"job-{index:05}", "namespace": NAMESPACE},
        "spec": {"runtimeRef": {"name": "plain"}, "trainer": {"numNodes": nodes, "image": "none", "command": ["true"]}},
    }


async def measure(kubeconfig: Path, children: list[Child], *, jobs: int, nodes: int, limit: float) -> Outcome:
    """Create the TrainJobs and wait until they have ended.

    Raises:
        TimeoutError: it takes longer than `limit` seconds.
    """
    async with connect(ConnectionOptions(kubeconfig=kubeconfig)) as client:
        before = [(each.resident_bytes(), each.cpu_seconds()) for each in children]
        version, start = await _version(client), time.monotonic()
        await _create(client, jobs, nodes)
        created = time.monotonic() - start
        with anyio.fail_after(limit):
            while sum((counts := await _count(client)).values()) < jobs:  # noqa: ASYNC110 - seen as users see it
                await anyio.sleep(_POLL)
        seconds = time.monotonic() - start
        writes = await _version(client) - version
        usages = [
            Usage(each.name, idle, each.resident_bytes(), each.resident_bytes("VmHWM"), each.cpu_seconds() - cpu)
            for each, (idle, cpu) in zip(children, before, strict=True)
        ]
        events = len((await client.list(EVENTS)).items)
    return Outcome(created, seconds, counts["Complete"], counts["Failed"], writes, events, usages)


async def _create(client: Client, jobs: int, nodes: int) -> None:
    limit = anyio.CapacityLimiter(_CREATORS)

    async def create(index: int) -> None:
        async with limit:
            await client.create(TRAIN_JOBS, train_job(index, nodes))

    async with anyio.create_task_group() as tasks:
        for index in range(jobs):
            tasks.start_soon(create, index)


async def _version(client: Client) -> int:
    """The resource version of the cluster, which grows by one with each write."""
    return int((await client.list_page(PODS, options=ListOptions(limit=1))).resource_version)


async def _count(client: Client) -> dict[str, int]:
    """How many TrainJobs have ended, and how."""
    counts = {"Complete": 0, "Failed": 0}
    for job in (await client.list(TRAIN_JOBS)).items:
        state = (job.get("status") or {}).get("state") or ""
        if state in counts:
            counts[state] += 1
    return counts


async def prepare(kubeconfig: Path) -> None:
    """Install what TrainJobs need."""
    async with connect(ConnectionOptions(kubeconfig=kubeconfig)) as client:
        await install_definitions(client)
        await install_runtimes(client)


def show(outcome: Outcome, jobs: int, nodes: int) -> None:
    """Print what came of it."""
    console = Console()
    console.print(
        f"{jobs} TrainJobs x {nodes} pods: {outcome.complete} complete, {outcome.failed} failed in "
        f"{outcome.seconds:.1f} s (created within {outcome.seconds_to_create:.1f} s)"
    )
    console.print(
        f"{outcome.writes} writes, {outcome.writes / outcome.seconds:.0f} a second, "
        f"{outcome.writes / jobs:.1f} for each TrainJob; {outcome.events} events"
    )
    table = Table("process", "idle MB", "after MB", "peak MB", "CPU s", "of one core")
    for each in outcome.usages:
        megabytes = [f"{number / 1e6:.0f}" for number in (each.idle, each.after, each.peak)]
        table.add_row(each.name, *megabytes, f"{each.cpu_seconds:.1f}", f"{each.cpu_seconds / outcome.seconds:.0%}")
    console.print(table)


def main(
    jobs: Annotated[int, typer.Option(min=1, help="TrainJobs.")] = 1000,
    nodes: Annotated[int, typer.Option(min=1, help="Pods of each.")] = 2,
    limit: Annotated[float, typer.Option(help="Seconds after which it is given up.")] = 600,
    logs: Annotated[Path | None, typer.Option(help="Where logs of the processes are kept.")] = None,
) -> None:
    """Run TrainJobs on a dev cluster with fake pods, and print what it takes."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = logs or Path(temporary)
        kubeconfig = directory / "kubeconfig"
        trainer = [sys.executable, "-m", "trainer.cli"]
        options = ["--fake-pods", "--data-dir", str(Path(temporary) / "data"), "--kubeconfig", str(kubeconfig)]
        with child("cluster", [*trainer, "cluster", *options], directory, ready="cluster ready") as cluster:
            anyio.run(prepare, kubeconfig)
            configuration = directory / "configuration.yaml"
            configuration.write_text(render_configuration(Configuration().without_servers()), encoding="utf-8")
            files = ["--kubeconfig", str(kubeconfig), "--config", str(configuration)]
            with child("manager", [*trainer, "manager", *files], directory, ready="started manager") as manager:

                async def run() -> Outcome:
                    return await measure(kubeconfig, [cluster, manager], jobs=jobs, nodes=nodes, limit=limit)

                show(anyio.run(run), jobs, nodes)


if __name__ == "__main__":
    typer.run(main)
