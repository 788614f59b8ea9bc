"""What is measured, one after the other: the floor, convergence, silence, latency, and a restart."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from benchmarks.converging import load as objects
from benchmarks.converging.watching import Sightings, watching
from trainer.api.trainingruntime import TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.client import PatchType
from trainer.kube.clock import SystemClock, timestamp
from trainer.kube.resource import NAMESPACES
from trainer.workloads import JOBSETS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from benchmarks.converging.load import Load
    from benchmarks.worker import Worker
    from trainer.kube.client import Client

_POLL_SECONDS = 0.1


class Times(msgspec.Struct, frozen=True):
    """Seconds until all are there."""

    created: float
    """From the first request until the last JobSet exists."""
    completed: float
    """From the first status of a JobSet until everything is complete."""


class Latency(msgspec.Struct, frozen=True):
    """Seconds from the answer to the creation of a TrainJob until a watch shows its JobSet."""

    p50: float
    p99: float


class Usage(msgspec.Struct, frozen=True):
    """What the manager has taken for the jobs."""

    cpu_seconds: float
    """Of all jobs, from the first one until the last is complete."""
    requests: dict[str, float]
    """For each job, by verb and resource."""
    reconciles: float
    """For each job."""
    errors: float
    """Reconciles that failed, all together."""


class Restart(msgspec.Struct, frozen=True):
    """What a new manager does among jobs that have ended."""

    seconds: float
    """From its start until each job has been looked at."""
    reconcile_seconds: float
    """Sum of its reconciles."""
    requests: float
    """Other than lists and watches, all together."""


class Driver:
    """Creates and finishes jobs in namespaces of its own.

    Args:
        client: acts for the benchmark.
        load: how much.
        prefix: of the names of its namespaces.
    """

    def __init__(self, client: Client, load: Load, prefix: str) -> None:
        self._client = client
        self._load = load
        self._prefix = prefix
        self._namespaces: list[str] = []

    async def namespace(self, purpose: str) -> str:
        """A new namespace with the runtime in it."""
        name = f"{self._prefix}-{purpose}"
        self._namespaces.append(name)
        body = {"apiVersion": "v1", "kind": NAMESPACES.kind, "metadata": {"name": name}}
        await self._client.create(NAMESPACES, body)
        await self._client.create(TRAINING_RUNTIMES, objects.runtime(name))
        return name

    async def clean_up(self) -> None:
        """Delete the namespaces."""
        for name in self._namespaces:
            await self._client.delete(NAMESPACES, name)

    async def floor(self) -> Times:
        """The same client creates the JobSets itself, and tells of their end."""
        namespace = await self.namespace("floor")
        names = self._names()
        template = objects.job_set(namespace, "template")
        async with watching(self._client, JOBSETS, namespace) as seen:

            async def create(name: str) -> None:
                body = {**template, "metadata": {**template["metadata"], "name": name}}
                await self._client.create(JOBSETS, body)

            return await self._measure(namespace, names, create, seen, seen)

    async def converge(self, purpose: str) -> Times:
        """TrainJobs become JobSets, whose ends become theirs, by whatever controller runs."""
        namespace = await self.namespace(purpose)
        async with (
            watching(self._client, JOBSETS, namespace) as job_sets,
            watching(self._client, TRAIN_JOBS, namespace) as train_jobs,
        ):

            async def create(name: str) -> None:
                await self._client.create(TRAIN_JOBS, objects.train_job(namespace, name))

            return await self._measure(namespace, self._names(), create, job_sets, train_jobs)

    async def latency(self) -> Latency:
        """TrainJobs at a steady rate, below what the manager can take; they are complete in the end."""
        namespace = await self.namespace("rate")
        answered: dict[str, float] = {}
        count, pause = int(self._load.rate * self._load.rate_seconds), 1 / self._load.rate

        async def create(name: str) -> None:
            await self._client.create(TRAIN_JOBS, objects.train_job(namespace, name))
            answered[name] = time.monotonic()

        async with watching(self._client, JOBSETS, namespace) as seen:
            async with anyio.create_task_group() as tasks:
                began = time.monotonic()
                for index in range(count):
                    await anyio.sleep(max(began + index * pause - time.monotonic(), 0))
                    tasks.start_soon(create, f"job-{index:05}")
            await seen.appearances.wait_for_count(count)
            await self._finish(namespace, list(answered))
        waits = sorted(max(seen.appeared[name] - moment, 0.0) for name, moment in answered.items())
        return Latency(p50=percentile(waits, 0.5), p99=percentile(waits, 0.99))

    async def _measure(
        self,
        namespace: str,
        names: Sequence[str],
        create: Callable[[str], Awaitable[None]],
        created: Sightings,
        ended: Sightings,
    ) -> Times:
        began = time.monotonic()
        await self._at_once(names, create)
        await created.appearances.wait_for_count(len(names))
        until_created = time.monotonic() - began
        status = {"status": objects.completed(timestamp(SystemClock().now()))}

        async def finish(name: str) -> None:
            await self._client.patch(JOBSETS, name, status, namespace, patch_type=PatchType.MERGE, subresource="status")

        began = time.monotonic()
        await self._at_once(names, finish)
        await ended.ends.wait_for_count(len(names))
        return Times(created=until_created, completed=time.monotonic() - began)

    async def _finish(self, namespace: str, names: Sequence[str]) -> None:
        """Say what the JobSet controller says when all Jobs have succeeded."""
        status = {"status": objects.completed(timestamp(SystemClock().now()))}

        async def finish(name: str) -> None:
            await self._client.patch(JOBSETS, name, status, namespace, patch_type=PatchType.MERGE, subresource="status")

        await self._at_once(names, finish)

    async def _at_once(self, names: Sequence[str], send: Callable[[str], Awaitable[None]]) -> None:
        remaining = iter(names)

        async def work() -> None:
            for name in remaining:
                await send(name)

        async with anyio.create_task_group() as tasks:
            for _ in range(self._load.concurrency):
                tasks.start_soon(work)

    def _names(self) -> list[str]:
        return [f"job-{index:05}" for index in range(self._load.jobs)]


def percentile(ordered: Sequence[float], share: float) -> float:
    """Of numbers in order, of which there is at least one."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


async def report(manager: Worker) -> dict[str, Any]:
    """What the manager says of itself."""
    return await anyio.to_thread.run_sync(manager.ask, "report")


async def settle(manager: Worker, seconds: float) -> dict[str, Any]:
    """Wait until the manager has done nothing for so many seconds; returns its report."""
    last, since = (-1.0, 0), time.monotonic()
    while True:
        found = await report(manager)
        present = found["reconciles"], sum(found["requests"].values())
        if present != last:
            last, since = present, time.monotonic()
        elif time.monotonic() - since > seconds:
            return found
        await anyio.sleep(_POLL_SECONDS)


def usage(before: dict[str, Any], after: dict[str, Any], jobs: int) -> Usage:
    """The difference of two reports."""
    requests = {
        name: (count - before["requests"].get(name, 0)) / jobs for name, count in sorted(after["requests"].items())
    }
    return Usage(
        cpu_seconds=after["cpu_seconds"] - before["cpu_seconds"],
        requests={name: count for name, count in requests.items() if count},
        reconciles=(after["reconciles"] - before["reconciles"]) / jobs,
        errors=after["errors"] - before["errors"],
    )


async def restart(manager: Worker, kubeconfig: Path, load: Load) -> Restart:
    """A manager that has just been started, until it has looked at each job."""
    began = time.monotonic()
    await anyio.to_thread.run_sync(lambda: manager.ask("start", kubeconfig=str(kubeconfig)))
    while (await report(manager))["reconciles"] < load.jobs:  # noqa: ASYNC110 - another process says so
        await anyio.sleep(_POLL_SECONDS)
    seconds = time.monotonic() - began
    found = await settle(manager, load.settled_seconds)
    others = sum(count for name, count in found["requests"].items() if not name.startswith(("list ", "watch ")))
    return Restart(seconds=seconds, reconcile_seconds=found["reconcile_seconds"], requests=others)
