"""What is measured, one after the other: the floor, one request, convergence, latency, silence, and a restart."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

import anyio
import msgspec

from benchmarks.converging import load as objects
from benchmarks.converging.load import Load
from benchmarks.converging.watching import Sightings, watching
from benchmarks.worker import Worker
from trainer.api.trainingruntime import TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.configuration.sections import CertManagementConfiguration
from trainer.kube.client import Client, PatchType
from trainer.kube.clock import SystemClock, timestamp
from trainer.kube.resource import NAMESPACES, SECRETS
from trainer.workloads import JOBSETS

_POLL_SECONDS = 0.1
_UPKEEP = re.compile(r"(list|watch) .*|.* (leases|secrets|(mutating|validating)webhookconfigurations)")


class Times(msgspec.Struct, frozen=True):
    """Seconds until all are there."""

    created: float
    """From the first request until the last JobSet exists."""
    completed: float
    """From the first status of a JobSet until everything is complete."""


class Latency(msgspec.Struct, frozen=True):
    """Seconds that something takes that is done at a steady rate."""

    p50: float
    p99: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Latency:
        """That of some numbers, of which there is at least one."""
        ordered = sorted(seconds)
        return cls(percentile(ordered, 0.5), percentile(ordered, 0.99))


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
    """All together, upkeep left out; one of them is the event that it leads."""


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
        """A new namespace."""
        name = f"{self._prefix}-{purpose}"
        self._namespaces.append(name)
        body = {"apiVersion": "v1", "kind": NAMESPACES.kind, "metadata": {"name": name}}
        await self._client.create(NAMESPACES, body)
        return name

    async def _with_runtime(self, purpose: str) -> str:
        name = await self.namespace(purpose)
        await self._client.create(TRAINING_RUNTIMES, objects.runtime(name))
        return name

    @property
    def managers_namespace(self) -> str:
        """Of the lease and the certificates of the manager."""
        return f"{self._prefix}-manager"

    async def prepare_manager(self) -> None:
        """Make the namespace of the manager, with the Secret that it keeps its certificates in."""
        await self.namespace("manager")
        metadata = {"name": CertManagementConfiguration().webhook_secret_name, "namespace": self.managers_namespace}
        await self._client.create(SECRETS, {"apiVersion": "v1", "kind": SECRETS.kind, "metadata": metadata})

    async def clean_up(self) -> None:
        """Delete the namespaces."""
        for name in self._namespaces:
            await self._client.delete(NAMESPACES, name)

    async def floor(self) -> Times:
        """The same client creates the JobSets itself, and tells of their end."""
        namespace = await self.namespace("floor")
        async with watching(self._client, JOBSETS, namespace) as seen:
            return await self._measure(namespace, self._names(), self._creator(namespace), seen, seen)

    async def bare_request(self) -> Latency:
        """One request at a time, at the rate of `latency`, to its answer."""
        create = self._creator(await self.namespace("bare"))
        took: list[float] = []

        async def measured(name: str) -> None:
            began = time.monotonic()
            await create(name)
            took.append(time.monotonic() - began)

        await self._at_rate(measured)
        return Latency.of(took)

    def _creator(self, namespace: str) -> Callable[[str], Awaitable[None]]:
        template = objects.job_set(namespace, "template")

        async def create(name: str) -> None:
            await self._client.create(JOBSETS, {**template, "metadata": {**template["metadata"], "name": name}})

        return create

    async def converge(self, purpose: str, between: Callable[[], Awaitable[None]] | None = None) -> Times:
        """TrainJobs become JobSets, whose ends become theirs, by whatever controller runs.

        `between` is awaited when all JobSets exist and none has a status; by default they end at once.
        """
        namespace = await self._with_runtime(purpose)
        async with (
            watching(self._client, JOBSETS, namespace) as job_sets,
            watching(self._client, TRAIN_JOBS, namespace) as train_jobs,
        ):

            async def create(name: str) -> None:
                await self._client.create(TRAIN_JOBS, objects.train_job(namespace, name))

            return await self._measure(namespace, self._names(), create, job_sets, train_jobs, between=between)

    async def latency(self) -> Latency:
        """From the answer to the creation of a TrainJob until a watch shows its JobSet, at a rate below the limit.

        The TrainJobs are complete in the end.
        """
        namespace = await self._with_runtime("rate")
        answered: dict[str, float] = {}

        async def create(name: str) -> None:
            await self._client.create(TRAIN_JOBS, objects.train_job(namespace, name))
            answered[name] = time.monotonic()

        async with watching(self._client, JOBSETS, namespace) as seen:
            await self._at_rate(create)
            await seen.appearances.wait_for_count(len(answered))
            await self._finish(namespace, list(answered))
        return Latency.of(max(seen.appeared[name] - moment, 0.0) for name, moment in answered.items())

    async def _at_rate(self, send: Callable[[str], Coroutine[None, None, None]]) -> None:
        began = time.monotonic()
        async with anyio.create_task_group() as tasks:
            for index in range(int(self._load.rate * self._load.rate_seconds)):
                await anyio.sleep(max(began + index / self._load.rate - time.monotonic(), 0))
                tasks.start_soon(send, f"job-{index:05}")

    async def _measure(
        self,
        namespace: str,
        names: Sequence[str],
        create: Callable[[str], Awaitable[None]],
        created: Sightings,
        ended: Sightings,
        *,
        between: Callable[[], Awaitable[None]] | None = None,
    ) -> Times:
        began = time.monotonic()
        await self._at_once(names, create)
        await created.appearances.wait_for_count(len(names))
        until_created = time.monotonic() - began
        if between is not None:
            await between()
        began = time.monotonic()
        await self._finish(namespace, names)
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
    last, since = (-1.0, 0.0), time.monotonic()
    while True:
        found = await report(manager)
        present = found["reconciles"], sum(other_requests(found["requests"]).values())
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


async def restart(start: Callable[[], Awaitable[None]], manager: Worker, load: Load) -> Restart:
    """A manager that has just been started, until it has looked at each job."""
    began = time.monotonic()
    await start()
    while (await report(manager))["reconciles"] < load.jobs:  # noqa: ASYNC110 - another process says so
        await anyio.sleep(_POLL_SECONDS)
    seconds = time.monotonic() - began
    found = await settle(manager, load.settled_seconds)
    others = sum(other_requests(found["requests"]).values())
    return Restart(seconds=seconds, reconcile_seconds=found["reconcile_seconds"], requests=others)


def other_requests(requests: dict[str, float]) -> dict[str, float]:
    """Without upkeep: what learns of changes, renews the lease, and has the API server trust the webhooks."""
    return {name: count for name, count in requests.items() if not _UPKEEP.fullmatch(name)}
