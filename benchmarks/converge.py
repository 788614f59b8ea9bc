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
_MEBIBYTE = 2**20
_WRITES_OF_CHILDREN = ("apply jobsets", "create configmaps")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What converging takes."""

    load: Load
    machine: Machine
    floor: Times
    ours: Times
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
                ours = await driver.converge()
                after = await settle(manager, load.settled_seconds)
                rss = (await anyio.to_thread.run_sync(manager.ask, "memory"))["rss"]
                await anyio.sleep(load.quiet_seconds)
                quiet = usage(after, await report(manager), 1).requests
                latency = await driver.latency()
                await settle(manager, load.settled_seconds)
            with Worker(MANAGER, log) as manager:
                restarted = await restart(manager, kubeconfig, load)
        finally:
            await driver.clean_up()
    result = Result(
        load=load,
        machine=this_machine(),
        floor=floor,
        ours=ours,
        usage=usage(before, after, load.jobs),
        latency=latency,
        quiet_requests={name: count for name, count in quiet.items() if not name.startswith("watch ")},
        rss=rss,
        restart=restarted,
    )
    return msgspec.structs.replace(result, targets=_targets(result))


def _targets(result: Result) -> list[TargetResult]:
    """What the project wants to reach on two cores; reported, never asserted."""

    def at_most(text: str, measured: float, limit: float) -> TargetResult:
        return TargetResult(text, measured, is_met=measured <= limit)

    floor, ours, used = result.floor, result.ours, result.usage
    created, completed = ours.created / floor.created, ours.completed / floor.completed
    cpu = used.cpu_seconds / result.load.jobs * 1000
    most = max(used.requests.get(name, 0) for name in _WRITES_OF_CHILDREN)
    return [
        at_most("all JobSets: at most 2.8 times the floor", created, 2.8),
        at_most("all JobSets: at most 2 times the floor (aim)", created, 2),
        at_most("all Complete: at most 1.7 times the floor", completed, 1.7),
        at_most("all Complete: at most 1.5 times the floor (aim)", completed, 1.5),
        at_most("CPU of the manager: at most 3 ms per job", cpu, 3),
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
    load, floor, ours, used = result.load, result.floor, result.ours, result.usage
    table = Table("", "ours", "floor", "ratio", title=f"{load.jobs:,} TrainJobs, {load.concurrency} at once")
    for name, mine, bare in (
        ("until all JobSets exist", ours.created, floor.created),
        ("until all are complete", ours.completed, floor.completed),
    ):
        table.add_row(name, f"{mine:.1f} s", f"{bare:.1f} s", f"{mine / bare:.2f}")
    console.print(table)
    rows = {
        "CPU of the manager": f"{used.cpu_seconds / load.jobs * 1000:.1f} ms per job",
        "reconciles": f"{used.reconciles:.2f} per job, {used.errors:.0f} failed",
        "requests per job": ", ".join(f"{name} {count:.2f}" for name, count in used.requests.items()),
        f"TrainJob to JobSet at {load.rate:g}/s, p50 and p99": (
            f"{result.latency.p50 * 1000:.1f} ms, {result.latency.p99 * 1000:.1f} ms"
        ),
        f"requests in {load.quiet_seconds:g} quiet seconds": ", ".join(result.quiet_requests) or "none",
        "RSS of the manager": f"{result.rss / _MEBIBYTE:.0f} MiB",
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
