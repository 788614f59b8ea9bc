"""`python -m benchmarks.growth`: what a TrainJob costs among a thousand others, and among fifty thousand.

The API server is that of `trainer_kube_testing`, in a process of its own. At each size a new manager is started among
TrainJobs that have ended, looks at each, and then gets some more, which live from creation to the end.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.converging.phases import other_requests
from benchmarks.growing.api_server import NAMESPACE
from benchmarks.machine import this_machine
from benchmarks.results import Machine
from benchmarks.worker import Worker
from trainer.kubernetes_yaml import dump

DEFAULT_OUTPUT = Path(__file__).parent / "growth.json"
DEFAULT_SIZES = (1_000, 5_000, 50_000)
_MANAGER = "benchmarks.converging.manager"
_POLL_SECONDS = 0.2
_REST_SECONDS, _REST_CPU_SECONDS = 1.0, 0.03
"""A manager that takes less than this much of so many seconds has nothing to do."""


class Measurement(msgspec.Struct, frozen=True):
    """One number of TrainJobs."""

    jobs: int
    start_cpu_seconds: float
    """Of a new manager, until each of its controllers has looked at each of them."""
    start_seconds: float
    """Until its main controller has."""
    start_requests: float
    """That it sends meanwhile, other than to learn what there is."""
    bytes_per_job: float
    """Resident memory that a manager takes beyond that of one with a single TrainJob, for each."""
    peak_bytes_per_job: float
    """The same at the highest."""
    quiet_cpu_seconds: float
    """Of the manager while nothing happens."""
    job_cpu_seconds: float
    """For each TrainJob that is created, and completed, among them."""
    errors: float
    """Reconciles that failed."""


class Result(msgspec.Struct, frozen=True):
    """What growth costs."""

    machine: Machine
    more: int
    """TrainJobs that were created at each size."""
    quiet_seconds: float
    """For how long nothing happened."""
    measurements: list[Measurement]


def run(sizes: tuple[int, ...], more: int, quiet_seconds: float = 30) -> Result:
    """Measure with these numbers of TrainJobs, in ascending order.

    Each manager gets `more`, once it has been left alone for `quiet_seconds`.

    Raises:
        WorkerError: the manager or the API server has ended early.
    """
    with tempfile.TemporaryDirectory() as directory, Worker("benchmarks.growing.api_server") as server:
        port = server.ask("start")["port"]
        kubeconfig = Path(directory) / "kubeconfig"
        kubeconfig.write_text(_kubeconfig(port), encoding="utf-8")
        with Worker(_MANAGER, Path(os.devnull)) as manager:
            manager.ask("start", kubeconfig=str(kubeconfig), namespace=NAMESPACE, port=0)
            server.ask("live", jobs=1)
        with Worker(_MANAGER, Path(os.devnull)) as manager:
            manager.ask("start", kubeconfig=str(kubeconfig), namespace=NAMESPACE, port=0)
            empty = manager.ask("memory")["rss"]
        measurements = []
        for size in sizes:
            server.ask("multiply", jobs=size)
            measurements.append(_measure(server, kubeconfig, size, more, empty=empty, quiet_seconds=quiet_seconds))
    return Result(this_machine(), more, quiet_seconds, measurements)


def _measure(
    server: Worker, kubeconfig: Path, jobs: int, more: int, *, empty: int, quiet_seconds: float
) -> Measurement:
    with Worker(_MANAGER, Path(os.devnull)) as manager:
        began = time.monotonic()
        manager.ask("start", kubeconfig=str(kubeconfig), namespace=NAMESPACE, port=0)
        while manager.ask("report")["reconciles"] < jobs:
            time.sleep(_POLL_SECONDS)
        seconds = time.monotonic() - began
        started = _wait_until_idle(manager)
        memory = manager.ask("memory")
        settled = _wait_until_idle(manager)["cpu_seconds"]
        time.sleep(quiet_seconds)
        before = manager.ask("report")["cpu_seconds"]
        server.ask("live", jobs=more)
        after = manager.ask("report")
    return Measurement(
        jobs=jobs,
        start_cpu_seconds=started["cpu_seconds"],
        start_seconds=seconds,
        start_requests=sum(other_requests(started["requests"]).values()),
        bytes_per_job=(memory["rss"] - empty) / jobs,
        peak_bytes_per_job=(memory["peak"] - empty) / jobs,
        quiet_cpu_seconds=before - settled,
        job_cpu_seconds=(after["cpu_seconds"] - before) / more,
        errors=after["errors"],
    )


def _wait_until_idle(manager: Worker) -> dict[str, Any]:
    """Wait until the CPU time stops growing; returns the report."""
    while True:
        before = manager.ask("report")["cpu_seconds"]
        time.sleep(_REST_SECONDS)
        report = manager.ask("report")
        if report["cpu_seconds"] - before < _REST_CPU_SECONDS:
            return report


def _kubeconfig(port: int) -> str:
    return dump(
        {
            "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "fake", "user": {}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
            "current-context": "fake",
        }
    )


def print_result(console: Console, result: Result) -> None:
    """A table of the sizes."""
    quiet = f"CPU in {result.quiet_seconds:g} quiet seconds"
    table = Table(
        "TrainJobs", "start", "CPU of the start per job", "RSS per job", "at its peak", quiet, "CPU of one more job"
    )
    for each in result.measurements:
        table.add_row(
            f"{each.jobs:,}",
            f"{each.start_seconds:.1f} s",
            f"{each.start_cpu_seconds / each.jobs * 1000:.2f} ms",
            f"{each.bytes_per_job / 1024:.1f} KiB",
            f"{each.peak_bytes_per_job / 1024:.1f} KiB",
            f"{each.quiet_cpu_seconds:.3f} s",
            f"{each.job_cpu_seconds * 1000:.1f} ms",
        )
    console.print(table)
    failed = sum(each.errors for each in result.measurements)
    sent = sum(each.start_requests for each in result.measurements)
    console.print(f"{result.more} more at each size, {failed:.0f} failed reconciles, {sent:.0f} requests of all starts")


def main(
    *,
    jobs: Annotated[list[int] | None, typer.Option(min=1, help="Number of TrainJobs; may be repeated.")] = None,
    more: Annotated[int, typer.Option(min=1, help="TrainJobs that are created at each size.")] = 500,
    output: Annotated[Path, typer.Option(help="JSON file to write.")] = DEFAULT_OUTPUT,
) -> None:
    """Start managers among more and more TrainJobs, and measure what they take."""
    result = run(tuple(sorted(jobs or DEFAULT_SIZES)), more)
    output.write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    print_result(Console(width=None if sys.stdout.isatty() else 120), result)


if __name__ == "__main__":
    typer.run(main)
