"""What a run of `benchmarks.converge` has measured, the targets of the project, and the tables."""

from __future__ import annotations

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.converging.load import Load
from benchmarks.converging.phases import Latency, Restart, Times, Usage
from benchmarks.results import Machine, TargetResult

_MEBIBYTE = 2**20
_WRITES_OF_CHILDREN = ("apply jobsets", "create configmaps")


class Converged(msgspec.Struct, frozen=True):
    """All jobs created and completed."""

    times: Times
    api_server_cpu_seconds: float | None
    """What the API server has taken meanwhile; None where it cannot be known."""


class NullController(msgspec.Struct, frozen=True):
    """What a bare process takes that does no more than a controller must: `benchmarks.converging.null`."""

    converged: Converged
    cpu_seconds: float
    """Of all jobs."""
    rss: int


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What converging takes."""

    load: Load
    machine: Machine
    has_webhooks: bool
    """Whether the API server asked the webhooks of the manager, which it can on the same machine only."""
    floor: Converged
    ours: Converged
    null: NullController
    usage: Usage
    parts: dict[str, Usage]
    """That of the times in which JobSets were created, stayed without status, and ended; empty where they ended at
    once."""
    bare: Latency
    """Of one request to create a JobSet, to its answer."""
    latency: Latency
    """From the answer to the creation of a TrainJob until a watch shows its JobSet."""
    quiet_requests: dict[str, float]
    """Requests of the manager within `load.quiet_seconds` in which nothing happened, see `other_requests`."""
    quiet_cpu_seconds: float
    """What the manager took meanwhile, all jobs being complete; its lease renewals are part of that."""
    rss: int
    """Bytes that the manager takes with all jobs in its caches, once they are complete."""
    restart: Restart
    targets: list[TargetResult] = []


def check_targets(result: Result) -> list[TargetResult]:
    """What the project wants to reach on two cores; reported, never asserted."""

    def at_most(text: str, measured: float | None, limit: float) -> TargetResult:
        return TargetResult(text, measured, is_met=measured is not None and measured <= limit)

    null, ours, used = result.null, result.ours.times, result.usage
    least = null.converged.times
    most = max(used.requests.get(name, 0) for name in _WRITES_OF_CHILDREN)
    server = _ratio(result.ours.api_server_cpu_seconds, null.converged.api_server_cpu_seconds)
    return [
        at_most("all JobSets: at most 1.5 times the null controller", ours.created / least.created, 1.5),
        at_most("all Complete: no longer than the null controller", ours.completed / least.completed, 1),
        at_most("CPU: at most 3 times the null controller", used.cpu_seconds / null.cpu_seconds, 3),
        at_most("CPU of the API server: at most 1.5 times the null controller", server, 1.5),
        at_most("TrainJob to JobSet, p50: at most 3 times one request", result.latency.p50 / result.bare.p50, 3),
        at_most("TrainJob to JobSet, p99: at most twice p50", result.latency.p99 / result.latency.p50, 2),
        at_most("RSS: at most 80 MiB", result.rss / _MEBIBYTE, 80),
        at_most("CPU in 30 quiet seconds: at most 0.02 s", result.quiet_cpu_seconds * _quiet_share(result), 0.02),
        at_most("at most one write per child object", most, 1),
        at_most("no failed reconcile", used.errors, 0),
        at_most("no request while nothing happens", sum(result.quiet_requests.values()), 0),
        at_most("after a restart: under 1 s of reconciling", result.restart.reconcile_seconds, 1),
    ]


def print_result(console: Console, result: Result) -> None:
    """Tables of the numbers and of the targets."""
    console.print(_comparison(result))
    used = result.usage
    rows = {
        "webhooks": "on" if result.has_webhooks else "off: the API server does not reach this machine",
        "reconciles": f"{used.reconciles:.2f} per job, {used.errors:.0f} failed",
        "requests per job": ", ".join(f"{name} {count:.2f}" for name, count in used.requests.items()),
        f"requests in {result.load.quiet_seconds:g} quiet seconds": ", ".join(result.quiet_requests) or "none",
        "restart": (
            f"{result.restart.seconds:.1f} s, {result.restart.reconcile_seconds:.2f} s of reconciles, "
            f"{result.restart.requests:.0f} requests"
        ),
        "machine": f"{result.machine.cpus} x {result.machine.cpu}, Python {result.machine.python}, "
        f"load average {result.machine.load_average}",
    }
    for name, part in result.parts.items():
        cpu = part.cpu_seconds / result.load.jobs * 1000
        rows[f"{name}, per job"] = f"{cpu:.2f} ms, {part.reconciles:.2f} reconciles"
    details = Table(show_header=False)
    for name, value in rows.items():
        details.add_row(name, value)
    console.print(details)
    targets = Table("target", "measured", "")
    for each in result.targets:
        measured = "n/a" if each.measured is None else f"{each.measured:,.3g}"
        targets.add_row(each.target, measured, "met" if each.is_met else "not met")
    console.print(targets)


def _comparison(result: Result) -> Table:
    load, null = result.load, result.null
    table = Table(
        "",
        "floor",
        "null controller",
        "ours",
        "ours : null",
        title=f"{load.jobs:,} TrainJobs, {load.concurrency} at once",
    )
    floor, least, ours = result.floor.times, null.converged.times, result.ours.times
    for name, bare, lowest, mine in (
        ("until all JobSets exist", floor.created, least.created, ours.created),
        ("until all are complete", floor.completed, least.completed, ours.completed),
    ):
        table.add_row(name, f"{bare:.1f} s", f"{lowest:.1f} s", f"{mine:.1f} s", f"{mine / lowest:.2f}")
    per_job = [seconds / load.jobs * 1000 for seconds in (null.cpu_seconds, result.usage.cpu_seconds)]
    ratio = f"{per_job[1] / per_job[0]:.2f}"
    table.add_row("CPU of the manager per TrainJob", "", f"{per_job[0]:.1f} ms", f"{per_job[1]:.1f} ms", ratio)
    sizes = [size / _MEBIBYTE for size in (null.rss, result.rss)]
    table.add_row("RSS after", "", *(f"{size:.0f} MiB" for size in sizes), f"{sizes[1] / sizes[0]:.2f}")
    single, latency = result.bare, result.latency
    of_one = f"{latency.p50 / single.p50:.2f} of one request, p99 {latency.p99 / latency.p50:.2f} of p50"
    one = f"one request {_percentiles(single)}"
    table.add_row(f"TrainJob accepted to JobSet at {load.rate:g}/s, p50 / p99", one, "", _percentiles(latency), of_one)
    servers = [each.api_server_cpu_seconds for each in (result.floor, null.converged, result.ours)]
    ratio = _text(_ratio(servers[2], servers[1]), "")
    table.add_row("CPU of the API server, both phases", *(_text(seconds, " s") for seconds in servers), ratio)
    quiet = f"{result.quiet_cpu_seconds:.3f} s"
    table.add_row(f"CPU of the manager in {load.quiet_seconds:g} quiet seconds", "", "", quiet, "")
    return table


def _percentiles(latency: Latency) -> str:
    return f"{latency.p50 * 1000:.1f} / {latency.p99 * 1000:.1f} ms"


def _quiet_share(result: Result) -> float:
    return 30 / result.load.quiet_seconds


def _ratio(measured: float | None, least: float | None) -> float | None:
    return None if not measured or not least else measured / least


def _text(number: float | None, unit: str) -> str:
    return "n/a" if number is None else f"{number:.2f}{unit}"
