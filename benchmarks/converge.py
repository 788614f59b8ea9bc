"""`python -m benchmarks.converge`: how fast TrainJobs become JobSets and JobSets TrainJobs that are complete.

The benchmark is the client that creates TrainJobs, and it plays the JobSet controller, whose word it writes into the
status of JobSets. Beside it stand the floor: the same client creating the same JobSets and writing the same statuses,
with no manager there; and the null controller, which does no more than a controller must. Numbers are ratios to that,
since the API server is what takes most of the time.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import anyio
import msgspec
import typer
from rich.console import Console

from benchmarks.child import Child, dev_cluster
from benchmarks.converging.api_server import cpu_clock
from benchmarks.converging.installation import definitions, free_port, reaches_webhooks, webhooks
from benchmarks.converging.load import Load, job_set
from benchmarks.converging.phases import Driver, Times, other_requests, report, restart, settle, usage
from benchmarks.converging.results import Converged, NullController, Result, check_targets, print_result
from benchmarks.machine import this_machine
from benchmarks.worker import Worker
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer.kube.rest.http import HttpClient

DEFAULT_OUTPUT = Path(__file__).parent / "converge.json"
DEFAULT_LOAD = Load()
MANAGER = "benchmarks.converging.manager"
_PARTS = ("JobSets are created", "JobSets have no status", "JobSets end")
NULL_CONTROLLER = "benchmarks.converging.null"


def run(load: Load, kubeconfig: Path | None, log: Path | None = None) -> Result:
    """Measure on the cluster of this kubeconfig, or on a dev cluster that lasts as long as the measurement.

    Raises:
        WorkerError: the manager has ended early.
        RuntimeError: the dev cluster does not start, or this cluster has no JobSets, or a manager.
        TimeoutError: things do not come about.
    """
    with tempfile.TemporaryDirectory() as directory:
        if kubeconfig is not None:
            return anyio.run(_run, load, kubeconfig, None, log)
        with dev_cluster(Path(directory)) as (own, process):
            return anyio.run(_run, load, own, process, log)


async def _run(load: Load, kubeconfig: Path, api_server: Child | None, log: Path | None) -> Result:
    async with connect(ConnectionOptions(kubeconfig=kubeconfig)) as client, definitions(client):
        driver = Driver(client, load, f"converge-{os.getpid()}")
        try:
            measurement = _Measurement(client, driver, kubeconfig, api_server, log=log or Path(os.devnull))
            return await measurement.run(load)
        finally:
            with anyio.CancelScope(shield=True):
                await driver.clean_up()


class _Measurement:
    """One run of all phases on one cluster."""

    def __init__(
        self, client: HttpClient, driver: Driver, kubeconfig: Path, api_server: Child | None, *, log: Path
    ) -> None:
        self._client = client
        self._driver = driver
        self._kubeconfig = kubeconfig
        self._log = log
        self._api_server_cpu = cpu_clock(kubeconfig, api_server)

    async def run(self, load: Load) -> Result:
        """Floor, manager, restart, null controller."""
        driver = self._driver
        floor = await self._converged(driver.floor)
        bare = await driver.bare_request()
        async with AsyncExitStack() as admission:
            port = free_port()
            await admission.enter_async_context(webhooks(self._client, port))
            async with self._manager(port) as manager:
                has_webhooks = await reaches_webhooks(self._client, "default")
                if not has_webhooks:
                    await admission.aclose()
                before = await settle(manager, load.settled_seconds)
                reports = [before]

                async def pend() -> None:
                    reports.append(await report(manager))
                    await anyio.sleep(load.pending_seconds)
                    reports.append(await report(manager))

                between = pend if load.pending_seconds else None
                ours = await self._converged(lambda: driver.converge("jobs", between))
                after = await settle(manager, load.settled_seconds)
                pairs = [*itertools.pairwise([*reports, after])] if between else []
                rss = (await _ask(manager, "memory"))["rss"]
                before_silence = await report(manager)
                await anyio.sleep(load.quiet_seconds)
                after_silence = await report(manager)
                latency = await driver.latency()
                await settle(manager, load.settled_seconds)
            async with self._process() as manager:
                restarted = await restart(lambda: self._start(manager, port), manager, load)
        null = await self._null_controller(load.jobs)
        result = Result(
            load=load,
            machine=this_machine(),
            has_webhooks=has_webhooks,
            floor=floor,
            ours=ours,
            null=null,
            usage=usage(before, after, load.jobs),
            parts={name: usage(*pair, load.jobs) for name, pair in zip(_PARTS, pairs, strict=False)},
            bare=bare,
            latency=latency,
            quiet_requests=other_requests(usage(before_silence, after_silence, 1).requests),
            quiet_cpu_seconds=after_silence["cpu_seconds"] - before_silence["cpu_seconds"],
            rss=rss,
            restart=restarted,
        )
        return msgspec.structs.replace(result, targets=check_targets(result))

    async def _converged(self, phases: Callable[[], Awaitable[Times]]) -> Converged:
        before = await self._api_server_cpu()
        times = await phases()
        after = await self._api_server_cpu()
        return Converged(times, None if before is None or after is None else after - before)

    @asynccontextmanager
    async def _process(self, module: str = MANAGER) -> AsyncIterator[Worker]:
        with Worker(module, self._log) as worker:
            yield worker

    @asynccontextmanager
    async def _manager(self, port: int) -> AsyncIterator[Worker]:
        await self._driver.prepare_manager()
        async with self._process() as manager:
            await self._start(manager, port)
            yield manager

    async def _start(self, manager: Worker, port: int) -> None:
        await _ask(
            manager, "start", kubeconfig=str(self._kubeconfig), namespace=self._driver.managers_namespace, port=port
        )

    async def _null_controller(self, jobs: int) -> NullController:
        async with self._process(NULL_CONTROLLER) as worker:
            await _ask(worker, "start", kubeconfig=str(self._kubeconfig), template=job_set("default", "template"))
            before = (await report(worker))["cpu_seconds"]
            converged = await self._converged(lambda: self._driver.converge("null"))
            while (await report(worker))["requests"] < 2 * jobs:  # noqa: ASYNC110 - another process says so
                await anyio.sleep(0.1)
            cpu_seconds = (await report(worker))["cpu_seconds"] - before
            rss = (await _ask(worker, "memory"))["rss"]
            await _ask(worker, "stop")
        return NullController(converged, cpu_seconds, rss)


async def _ask(worker: Worker, command: str, **arguments: object) -> dict[str, Any]:
    return await anyio.to_thread.run_sync(lambda: worker.ask(command, **arguments))


def main(
    *,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="Cluster to measure on; it must have JobSet and no other manager. Default: a dev cluster."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="TrainJobs.")] = DEFAULT_LOAD.jobs,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests under way at once.")] = DEFAULT_LOAD.concurrency,
    rate: Annotated[float, typer.Option(min=0.1, help="TrainJobs a second for the latency.")] = DEFAULT_LOAD.rate,
    pending: Annotated[
        float, typer.Option(min=0, help="Seconds for which JobSets stay without status once all exist, such as 10.")
    ] = DEFAULT_LOAD.pending_seconds,
    output: Annotated[Path, typer.Option(help="JSON file to write.")] = DEFAULT_OUTPUT,
    log: Annotated[Path | None, typer.Option(help="File for what the manager logs. Default: nowhere.")] = None,
) -> None:
    """Create many TrainJobs at once and measure what it takes until they are complete."""
    result = run(Load(jobs=jobs, concurrency=concurrency, pending_seconds=pending, rate=rate), kubeconfig, log)
    output.write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    print_result(Console(width=None if sys.stdout.isatty() else 120), result)


if __name__ == "__main__":
    typer.run(main)
