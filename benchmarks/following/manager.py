"""`python -m benchmarks.following.manager`: the manager's progress room alone, and what it takes."""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from benchmarks.arrivals import Arrivals
from benchmarks.following.load import Load
from benchmarks.process import Effort, resident_bytes
from benchmarks.stalls import LoopStalls
from benchmarks.worker import obey
from trainer.api.jobset_labels import JOBSET_NAME
from trainer.kube import Manager, configure_logging
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import DEFAULT_LOG, LogOptions
from trainer.kube.memory import limit_memory
from trainer.kube.resource import PODS
from trainer.kube.rest.connection import tune_garbage_collector
from trainer.kube.rest.credentials import FixedCredentials
from trainer.kube.rest.http import HttpClient
from trainer.kube.rest.tls import ClientTls
from trainer.kube.rest.transport import Endpoint, Transport
from trainer.kube.selection import Selection
from trainer.progress.controller import ProgressController, ProgressOptions

TIMER = 0.01
"""Seconds of the timer whose lateness is what other work of the manager would feel."""

_TOKEN = "Bearer " + "t" * 900
"""As long as that of a service account."""


class _LogsElsewhere(HttpClient):
    """Asks another server for logs, and counts the lines of each."""

    def __init__(self, transport: Transport, logs: HttpClient, begun: Arrivals) -> None:
        super().__init__(transport)
        self.lines: Counter[str] = Counter()
        self._logs = logs
        self._begun = begun

    @asynccontextmanager
    async def logs(
        self, pod: str, namespace: str, options: LogOptions = DEFAULT_LOG
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """From the other server."""
        async with self._logs.logs(pod, namespace, options) as chunks:
            yield self._counted(pod, chunks)

    async def _counted(self, pod: str, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        if pod not in self.lines:
            self.lines[pod] = 0
            self._begun.step()
        async for chunk in chunks:
            self.lines[pod] += chunk.count(b"\n")
            yield chunk
            del chunk


class _Counting:
    """Handler that counts what appears."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:  # noqa: ARG002
        self._arrivals.step()

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        pass

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:
        pass


class Subject:
    """The manager under load."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._pods, self._logs = Arrivals(), Arrivals()

    async def start(self, load: object, api: str, logs: str, ca: str) -> object:
        """Run the manager, in a cluster without TrainJobs; answer with its memory."""
        self._load = msgspec.convert(load, Load)
        started = anyio.Event()
        self._tasks.start_soon(self._run, api, Endpoint(logs, tls=ClientTls(ca=Path(ca))), started)
        await started.wait()
        await anyio.sleep(0.2)
        return {"rss": resident_bytes()}

    async def _run(self, api: str, logs: Endpoint, started: anyio.Event) -> None:
        tune_garbage_collector()
        options = ProgressOptions(status_interval=self._load.throttle, read_interval=self._load.pace)
        async with (
            Transport(logs, FixedCredentials(_TOKEN), user_agent="trainer/benchmark") as log_transport,
            Transport(Endpoint(api), FixedCredentials(_TOKEN), user_agent="trainer/benchmark") as transport,
        ):
            self._client = _LogsElsewhere(transport, HttpClient(log_transport), self._logs)
            manager = Manager(self._client)
            # The informer of the progress room.
            manager.informer(PODS, Selection(label_selector=JOBSET_NAME)).add_handler(_Counting(self._pods))
            ProgressController(manager, options)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(manager.run)
                await manager.wait_for_start()
                started.set()

    async def wait_for_jobs(self) -> object:
        """Wait until all pods are cached, none of which runs; answer with the memory."""
        await self._pods.wait_for_count(self._load.jobs)
        # TrainJobs and JobSets come on watches of their own.
        await anyio.sleep(0.1 + self._load.jobs / 1000)
        return {"rss": resident_bytes()}

    async def wait_for_streams(self) -> object:
        """Wait until all logs have come to lines."""
        began = Effort.now()
        await self._logs.wait_for_count(self._load.jobs)
        return {"seconds": Effort.now().since(began).seconds}

    async def measure(self, seconds: float) -> object:
        """What the manager does and takes within so many seconds."""
        before, began = Counter(self._client.lines), Effort.now()
        stalls = LoopStalls(asyncio.get_running_loop(), tick=TIMER)
        with stalls.watching():
            await anyio.sleep(seconds)
        spent = Effort.now().since(began)
        lines = sorted(self._client.lines[pod] - before[pod] for pod in self._client.lines)
        measured: dict[str, Any] = {
            "seconds": spent.seconds,
            "cpu_seconds": spent.cpu_seconds,
            "lines": lines,
            "lag": stalls.longest_seconds,
            "lag_cpu": stalls.longest_cpu_seconds,
        }
        return measured | {"rss": resident_bytes()}


async def main() -> None:
    """Obey."""
    limit_memory()
    configure_logging(level="error")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    async with anyio.create_task_group() as tasks:
        subject = Subject(tasks)
        await obey(
            {
                "start": subject.start,
                "wait_for_jobs": subject.wait_for_jobs,
                "wait_for_streams": subject.wait_for_streams,
                "measure": subject.measure,
            }
        )
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    asyncio.run(main())
