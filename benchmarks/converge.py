"""`python -m benchmarks.converge`: how fast TrainJobs become JobSets and JobSets TrainJobs that are complete.

The benchmark is the client that creates TrainJobs, and it plays the JobSet controller, whose word it writes into the
status of JobSets. Beside it stands the floor: the same client creating the same JobSets and writing the same statuses,
with no manager there. Numbers are ratios to that, since the API server is what takes most of the time.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import msgspec
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.converging.load import Load
from benchmarks.converging.phases import Driver, Latency, Restart, Times, Usage, report, restart, settle, usage
from benchmarks.devcluster_scale import child
from benchmarks.machine import this_machine
from benchmarks.results import Machine, TargetResult
from benchmarks.worker import Worker
from trainer.cli.manifests import install_definitions
from trainer.kube.rest.connection import ConnectionOptions, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_OUTPUT = Path(__file__).parent / "converge.json"
DEFAULT_LOAD = Load()
MANAGER = "benchmarks.converging.manager"
NULL_CONTROLLER = "benchmarks.converging.null"
_MEBIBYTE = 2**20
_WRITES_OF_CHILDREN = ("apply jobsets", "create configmaps")


class NullController(msgspec.Struct, frozen=True):
    """What a bare process takes that does no more than a controller must: `benchmarks.converging.null`."""

    times: Times
    cpu_seconds: float
    """Of all jobs."""
    rss: int


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What converging takes."""

    load: Load
    machine: Machine
    floor: Times
    ours: Times
    null: NullController
    usage: Usage
    latency: Latency
    quiet_requests: dict[str, float]
    """All requests of the manager within `load.quiet_seconds` in which nothing happened, watches left out."""
    rss: int
    """Bytes that the manager takes with all jobs in its caches, once they are complete."""
    restart: Restart
    targets: list[TargetResult] = []


def run(load: Load, kubeconfig: Path | None, log: Path | None = None) -> Result:
    """Measure on the cluster of this kubeconfig, or on a dev cluster that lasts as long as the measurement.

    Raises:
        WorkerError: the manager has ended early.
        RuntimeError: the dev cluster does not start.
        TimeoutError: things do not come about.
    """
    with tempfile.TemporaryDirectory() as directory:
        if kubeconfig is not None:
            return anyio.run(_run, load, kubeconfig, log)
        with dev_cluster(Path(directory)) as own:
            return anyio.run(_run, load, own, log)


@contextmanager
def dev_cluster(directory: Path) -> Iterator[Path]:
    """A dev cluster that runs no pods; yields its kubeconfig.

    Raises:
        RuntimeError: it does not start.
    """
    kubeconfig = directory / "kubeconfig"
    command = [sys.executable, "-m", "trainer.cli", "cluster", "--no-kubelet", "--kubeconfig", str(kubeconfig)]
    with child("cluster", command, directory):
        yield kubeconfig


async def _run(load: Load, kubeconfig: Path, log: Path | None) -> Result:
    log = log or Path(os.devnull)
    async with connect(ConnectionOptions(kubeconfig=kubeconfig)) as client:
        await install_definitions(client)
        driver = Driver(client, load, f"converge-{os.getpid()}")
        try:
            floor = await driver.floor()
            with Worker(MANAGER, log) as manager:
                await anyio.to_thread.run_sync(lambda: manager.ask("start", kubeconfig=str(kubeconfig)))
                before = await settle(manager, load.settled_seconds)
                ours = await driver.converge("jobs")
                after = await settle(manager, load.settled_seconds)
                rss = (await anyio.to_thread.run_sync(manager.ask, "memory"))["rss"]
                await anyio.sleep(load.quiet_seconds)
                quiet = usage(after, await report(manager), 1).requests
                latency = await driver.latency()
                await settle(manager, load.settled_seconds)
            with Worker(MANAGER, log) as manager:
                restarted = await restart(manager, kubeconfig, load)
            null = await _null_controller(driver, kubeconfig, load, log)
        finally:
            await driver.clean_up()
    result = Result(
        load=load,
        machine=this_machine(),
        floor=floor,
        ours=ours,
        null=null,
        usage=usage(before, after, load.jobs),
        latency=latency,
        quiet_requests={name: count for name, count in quiet.items() if not name.startswith("watch ")},
        rss=rss,
        restart=restarted,
    )
    return msgspec.structs.replace(result, targets=_targets(result))


async def _null_controller(driver: Driver, kubeconfig: Path, load: Load, log: Path) -> NullController:
    with Worker(NULL_CONTROLLER, log) as worker:
        await anyio.to_thread.run_sync(lambda: worker.ask("start", kubeconfig_file=str(kubeconfig)))
        before = (await report(worker))["cpu_seconds"]
        times = await driver.converge("null")
        while (await report(worker))["requests"] < 2 * load.jobs:  # noqa: ASYNC110 - another process says so
            await anyio.sleep(0.1)
        cpu_seconds = (await report(worker))["cpu_seconds"] - before
        rss = (await anyio.to_thread.run_sync(worker.ask, "memory"))["rss"]
        await anyio.to_thread.run_sync(worker.ask, "stop")
    return NullController(times, cpu_seconds, rss)


def _targets(result: Result) -> list[TargetResult]:
    """What the project wants to reach on two cores; reported, never asserted."""

    def at_most(text: str, measured: float, limit: float) -> TargetResult:
        return TargetResult(text, measured, is_met=measured <= limit)

    null, ours, used = result.null, result.ours, result.usage
    most = max(used.requests.get(name, 0) for name in _WRITES_OF_CHILDREN)
    return [
        at_most("all JobSets: at most 1.5 times the null controller", ours.created / null.times.created, 1.5),
        at_most("all Complete: no longer than the null controller", ours.completed / null.times.completed, 1),
        at_most("CPU: at most 3 times the null controller", used.cpu_seconds / null.cpu_seconds, 3),
        at_most("TrainJob to JobSet, p50: at most 6 ms", result.latency.p50 * 1000, 6),
        at_most("TrainJob to JobSet, p99: at most 12 ms", result.latency.p99 * 1000, 12),
        at_most("RSS: at most 90 MiB", result.rss / _MEBIBYTE, 90),
        at_most("at most one write per child object", most, 1),
        at_most("no failed reconcile", used.errors, 0),
        at_most("no request while nothing happens", sum(result.quiet_requests.values()), 0),
        at_most("after a restart: under 1 s of reconciling", result.restart.reconcile_seconds, 1),
    ]


def print_result(console: Console, result: Result) -> None:
    """Tables of the numbers and of the targets."""
    load, floor, ours, used, null = result.load, result.floor, result.ours, result.usage, result.null
    table = Table(
        "",
        "ours",
        "floor",
        "ratio",
        "null controller",
        "ratio",
        title=f"{load.jobs:,} TrainJobs, {load.concurrency} at once",
    )
    for name, mine, bare, least in (
        ("until all JobSets exist", ours.created, floor.created, null.times.created),
        ("until all are complete", ours.completed, floor.completed, null.times.completed),
    ):
        ratios = f"{mine / bare:.2f}", f"{least:.1f} s", f"{mine / least:.2f}"
        table.add_row(name, f"{mine:.1f} s", f"{bare:.1f} s", *ratios)
    per_job = [seconds / load.jobs * 1000 for seconds in (used.cpu_seconds, null.cpu_seconds)]
    ratio = f"{per_job[0] / per_job[1]:.2f}"
    table.add_row("CPU per job", f"{per_job[0]:.1f} ms", "", "", f"{per_job[1]:.1f} ms", ratio)
    sizes = [size / _MEBIBYTE for size in (result.rss, null.rss)]
    table.add_row("RSS after", f"{sizes[0]:.0f} MiB", "", "", f"{sizes[1]:.0f} MiB", f"{sizes[0] / sizes[1]:.2f}")
    console.print(table)
    rows = {
        "reconciles": f"{used.reconciles:.2f} per job, {used.errors:.0f} failed",
        "requests per job": ", ".join(f"{name} {count:.2f}" for name, count in used.requests.items()),
        f"TrainJob to JobSet at {load.rate:g}/s, p50 and p99": (
            f"{result.latency.p50 * 1000:.1f} ms, {result.latency.p99 * 1000:.1f} ms"
        ),
        f"requests in {load.quiet_seconds:g} quiet seconds": ", ".join(result.quiet_requests) or "none",
        "restart": (
            f"{result.restart.seconds:.1f} s, {result.restart.reconcile_seconds:.2f} s of reconciles, "
            f"{result.restart.requests:.0f} requests"
        ),
        "load average of the machine": f"{result.machine.load_average}",
    }
    details = Table(show_header=False)
    for name, value in rows.items():
        details.add_row(name, value)
    console.print(details)
    targets = Table("target", "measured", "")
    for each in result.targets:
        measured = "n/a" if each.measured is None else f"{each.measured:,.3g}"
        targets.add_row(each.target, measured, "met" if each.is_met else "not met")
    console.print(targets)


def main(
    *,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="Cluster to measure on; it must have JobSet and no other manager. Default: a dev cluster."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="TrainJobs.")] = DEFAULT_LOAD.jobs,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests under way at once.")] = DEFAULT_LOAD.concurrency,
    rate: Annotated[float, typer.Option(min=0.1, help="TrainJobs a second for the latency.")] = DEFAULT_LOAD.rate,
    output: Annotated[Path, typer.Option(help="JSON file to write.")] = DEFAULT_OUTPUT,
    log: Annotated[Path | None, typer.Option(help="File for what the manager logs. Default: nowhere.")] = None,
) -> None:
    """Create many TrainJobs at once and measure what it takes until they are complete."""
    result = run(Load(jobs=jobs, concurrency=concurrency, rate=rate), kubeconfig, log)
    output.write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    print_result(Console(width=None if sys.stdout.isatty() else 120), result)


if __name__ == "__main__":
    typer.run(main)
