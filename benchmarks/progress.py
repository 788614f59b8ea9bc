"""`python -m benchmarks.progress`: follow the logs of a thousand TrainJobs at once, print what it takes, write JSON."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.following.load import Load, Mode
from benchmarks.machine import this_machine
from benchmarks.results import Machine, TargetResult
from benchmarks.worker import Worker
from trainer.keyring.keyring import new_keyring

DEFAULT_OUTPUT = Path(__file__).parent / "progress.json"
DEFAULT_LOAD = Load()

MEGABYTE = 1e6
DAY = timedelta(days=1)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What following takes."""

    load: Load
    machine: Machine
    memory_above_idle: int
    """Bytes that the manager takes above what it takes in a cluster without TrainJobs: objects and streams."""
    memory_of_streams: int
    """Bytes above the same manager with the same objects cached, while no log is followed."""
    lines_per_second: float
    """As many as were read."""
    cpu_share: float
    """Of one core."""
    cpu_per_1000_lines: float
    """Seconds."""
    lines_per_core: float
    """Lines that were read per second of processor time."""
    delay_p50: float | None
    """Seconds from the moment of a line to the status that shows it. None where no status was written."""
    delay_p99: float | None
    status_writes: float
    """Per second."""
    fewest_lines: int
    """Of one stream, within the measured time."""
    median_lines: int
    lag: float
    """Seconds that a timer of 10 ms was late at most, by the clock on the wall; other processes count."""
    lag_cpu: float
    """Seconds of processor time at most between two such timers: what our own work did."""
    seconds_to_open: float
    """Until all logs were being read."""
    sent_per_second: float
    """What the log server has sent: in a calm load it must not be what limits."""
    targets: list[TargetResult] = []


@dataclass(frozen=True, slots=True)
class _Found:
    """What the processes have answered."""

    idle: int
    cached: int
    opened: float
    measured: dict[str, Any]
    written: dict[str, Any]
    sent: dict[str, Any]


def run(load: Load, seconds: float) -> Result:
    """Put a load on a manager and measure for so many seconds.

    Raises:
        WorkerError: one of the processes has ended early.
    """
    load = msgspec.structs.replace(load, epoch=float(int(time.time()) - 60))
    with (
        tempfile.TemporaryDirectory() as directory,
        Worker("benchmarks.following.cluster") as cluster,
        Worker("benchmarks.following.log_server") as logs,
        Worker("benchmarks.following.manager") as manager,
    ):
        ca, certificate = _certificates(Path(directory))
        url = "https://127.0.0.1:{port}".format(**logs.ask("start", load=load, certificate=str(certificate)))
        api = cluster.ask("prepare", load=msgspec.structs.replace(load, jobs=0))["url"]
        idle = manager.ask("start", load=load, api=api, logs=url, ca=str(ca))["rss"]
        cluster.ask("prepare", load=load)
        cached = manager.ask("wait_for_jobs")["rss"]
        cluster.ask("start_pods")
        opened = manager.ask("wait_for_streams")["seconds"]
        # The first statuses come all at once.
        manager.ask("measure", seconds=load.throttle + load.lines_per_message / load.lines_per_second)
        cluster.ask("report")
        logs.ask("report")
        measured = manager.ask("measure", seconds=seconds)
        found = _Found(idle, cached, opened, measured, cluster.ask("report"), logs.ask("report"))
    return _result(load, found)


def _certificates(directory: Path) -> tuple[Path, Path]:
    keyring = new_keyring("benchmark", DAY, ["127.0.0.1"], DAY, datetime.now(UTC)).to_data()
    ca, certificate = directory / "ca.crt", directory / "server.pem"
    ca.write_bytes(keyring["ca.crt"])
    certificate.write_bytes(keyring["tls.crt"] + keyring["tls.key"])
    return ca, certificate


def _result(load: Load, found: _Found) -> Result:
    measured, written = found.measured, found.written
    per_stream, delays = measured["lines"], written["delays"]
    lines, seconds, cpu = sum(per_stream), measured["seconds"], measured["cpu_seconds"]
    result = Result(
        load=load,
        machine=this_machine(),
        memory_above_idle=measured["rss"] - found.idle,
        memory_of_streams=measured["rss"] - found.cached,
        lines_per_second=lines / seconds,
        cpu_share=cpu / seconds,
        cpu_per_1000_lines=cpu / lines * 1000,
        lines_per_core=lines / cpu,
        delay_p50=_percentile(delays, 0.5),
        delay_p99=_percentile(delays, 0.99),
        status_writes=written["writes"] / seconds,
        fewest_lines=per_stream[0],
        median_lines=per_stream[len(per_stream) // 2],
        lag=measured["lag"],
        lag_cpu=measured["lag_cpu"],
        seconds_to_open=found.opened,
        sent_per_second=found.sent["lines"] / seconds,
    )
    return msgspec.structs.replace(result, targets=_targets(result))


def _percentile(ordered: list[float], share: float) -> float | None:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else None


def _targets(result: Result) -> list[TargetResult]:
    """What the project wants to reach on two cores of a common server; reported, never asserted."""
    delay, bound = result.delay_p99, result.load.throttle + 1

    def target(text: str, measured: float | None, *, is_met: bool) -> TargetResult:
        return TargetResult(text, measured, is_met=is_met)

    megabytes = result.memory_of_streams / MEGABYTE
    ratio = result.fewest_lines / result.median_lines if result.median_lines else 0.0
    return [
        target("streams take at most 100 MB", megabytes, is_met=megabytes <= 100),
        target("at least 200,000 lines/s on one core", result.lines_per_core, is_met=result.lines_per_core >= 200_000),
        target(f"line to status, p99: at most {bound:g} s", delay, is_met=delay is not None and delay <= bound),
        target("no stream reads less than half of the median", ratio, is_met=ratio >= 0.5),
        target("nothing else waits longer than 50 ms (wall)", result.lag, is_met=result.lag <= 0.05),
        target("nothing else waits longer than 50 ms (own CPU)", result.lag_cpu, is_met=result.lag_cpu <= 0.05),
    ]


def print_result(console: Console, result: Result) -> None:
    """Tables of the numbers and of the targets."""
    load = result.load
    table = Table(title=f"{load.jobs:,} logs, {load.lines_per_second:g} lines/s each, {load.mode}", show_header=False)
    rows = {
        "memory above idle": f"{result.memory_above_idle / MEGABYTE:.1f} MB",
        "of that, streams": f"{result.memory_of_streams / MEGABYTE:.1f} MB",
        "lines": f"{result.lines_per_second:,.0f} /s (sent: {result.sent_per_second:,.0f} /s)",
        "CPU": f"{result.cpu_share:.0%} of a core",
        "CPU per 1,000 lines": f"{result.cpu_per_1000_lines * 1000:.2f} ms",
        "lines that one core could take": f"{result.lines_per_core:,.0f} /s",
        "line to status, p50 and p99": f"{_seconds(result.delay_p50)}, {_seconds(result.delay_p99)}",
        "status writes": f"{result.status_writes:,.0f} /s",
        "lines of one stream, fewest and median": f"{result.fewest_lines:,}, {result.median_lines:,}",
        "timer of 10 ms late by at most": f"{result.lag * 1000:.0f} ms ({result.lag_cpu * 1000:.0f} ms own CPU)",
        "until all logs were read": f"{result.seconds_to_open:.1f} s",
        "load average of the machine": f"{result.machine.load_average}",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)
    targets = Table("target", "measured", "")
    for each in result.targets:
        measured = "n/a" if each.measured is None else f"{each.measured:,.3g}"
        if each.measured is not None and each.measured >= 1000:
            measured = f"{each.measured:,.0f}"
        targets.add_row(each.target, measured, "met" if each.is_met else "not met")
    console.print(targets)


def _seconds(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f} s"


def main(
    *,
    jobs: Annotated[int, typer.Option(min=1, help="TrainJobs whose logs are followed.")] = DEFAULT_LOAD.jobs,
    rate: Annotated[float, typer.Option(min=20, help="Lines a second of each log.")] = DEFAULT_LOAD.lines_per_second,
    message_every: Annotated[
        int, typer.Option(min=1, help="Every so manieth line tells of the progress.")
    ] = DEFAULT_LOAD.lines_per_message,
    mode: Annotated[Mode, typer.Option(help="How lines travel.")] = DEFAULT_LOAD.mode,
    throttle: Annotated[
        float, typer.Option(min=0, help="Seconds between two writes of a status.")
    ] = DEFAULT_LOAD.throttle,
    pace: Annotated[float, typer.Option(min=0, help="Seconds between two reads of a log.")] = DEFAULT_LOAD.pace,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to measure.")] = 20.0,
    output: Annotated[Path, typer.Option(help="JSON file to write.")] = DEFAULT_OUTPUT,
) -> None:
    """Follow the logs of many TrainJobs at once, over TLS, and measure what it takes."""
    load = Load(jobs, rate, message_every, mode, throttle, pace)
    result = run(load, seconds)
    output.write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    print_result(Console(width=None if sys.stdout.isatty() else 120), result)


if __name__ == "__main__":
    typer.run(main)
