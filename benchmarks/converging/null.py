"""`python -m benchmarks.converging.null`: a bare process that does what a controller cannot leave out.

It posts a JobSet for each new TrainJob, always the same, and writes the status of the TrainJob when the JobSet is
complete: no cache, no webhooks, no events, nothing checked. What it takes is what this machine and API server ask for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from benchmarks.converging.api_server import open_session
from benchmarks.process import Effort, resident_bytes
from benchmarks.worker import obey
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.clock import SystemClock, timestamp
from trainer.kube.logs.logs import configure_logging
from trainer.kube.resource import Resource
from trainer.kube.rest.connection import tune_garbage_collector
from trainer.workloads import JOBSETS

_WORKERS: Final = 10
"""Requests under way at once for each kind, as many as the manager has workers."""
_LONGEST_LINE: Final = 1 << 20


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    terminal_state: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata
    status: _Status = _Status()


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: _Object


_event = msgspec.json.Decoder(_Event)


class Subject:
    """The null controller."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._requests = 0

    async def start(self, kubeconfig: str, template: dict[str, Any]) -> object:
        """Watch; answers when both watches are open.

        Args:
            kubeconfig: names the cluster.
            template: the JobSet to post, without name and namespace.
        """
        tune_garbage_collector()
        self._began = Effort.now()
        self._template = template
        self._session = await open_session(Path(kubeconfig))
        for resource, handle in ((TRAIN_JOBS, self._create), (JOBSETS, self._complete)):
            is_open = anyio.Event()
            self._tasks.start_soon(self._follow, resource, handle, is_open)
            await is_open.wait()
        return {}

    async def report(self) -> object:
        """What it has taken so far."""
        return {"cpu_seconds": Effort.now().since(self._began).cpu_seconds, "requests": self._requests}

    async def memory(self) -> object:
        """What it holds."""
        return {"rss": resident_bytes()}

    async def stop(self) -> object:
        """End all requests."""
        self._tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._session.close()
        return {}

    async def _follow(
        self, resource: Resource, handle: Callable[[_Event], Awaitable[None]], is_open: anyio.Event
    ) -> None:
        events: asyncio.Queue[_Event] = asyncio.Queue()

        async def work() -> None:
            while True:
                await handle(await events.get())

        async with anyio.create_task_group() as tasks:
            for _ in range(_WORKERS):
                tasks.start_soon(work)
            async for event in self._watch(resource, is_open):
                events.put_nowait(event)

    async def _watch(self, resource: Resource, is_open: anyio.Event) -> AsyncIterator[_Event]:
        path = f"/apis/{resource.group}/{resource.version}/{resource.plural}"
        async with self._session.get(path, params={"limit": "1"}) as response:
            version = (await response.json())["metadata"]["resourceVersion"]
        query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "3600"}
        async with self._session.get(path, params=query, read_bufsize=_LONGEST_LINE) as response:
            is_open.set()
            async for line in response.content:
                yield _event.decode(line)

    async def _create(self, event: _Event) -> None:
        if event.type != "ADDED":
            return
        metadata = event.object.metadata
        body = {**self._template, "metadata": {"name": metadata.name, "namespace": metadata.namespace}}
        path = f"/apis/{JOBSETS.group}/{JOBSETS.version}/namespaces/{metadata.namespace}/{JOBSETS.plural}"
        await self._send("POST", path, "application/json", body)

    async def _complete(self, event: _Event) -> None:
        if event.type != "MODIFIED" or event.object.status.terminal_state != "Completed":
            return
        metadata = event.object.metadata
        condition = {
            "type": "Complete",
            "status": "True",
            "reason": "JobsCompleted",
            "message": "",
            "lastTransitionTime": timestamp(SystemClock().now()),
        }
        path = f"/apis/{TRAIN_JOBS.group}/{TRAIN_JOBS.version}/namespaces/{metadata.namespace}/{TRAIN_JOBS.plural}"
        body = {"status": {"conditions": [condition]}}
        await self._send("PATCH", f"{path}/{metadata.name}/status", "application/merge-patch+json", body)

    async def _send(self, method: str, path: str, content_type: str, body: object) -> None:
        self._requests += 1
        headers = {"Content-Type": content_type}
        async with self._session.request(method, path, data=msgspec.json.encode(body), headers=headers) as response:
            await response.read()
            response.raise_for_status()


async def main() -> None:
    """Obey."""
    configure_logging(json=True, level="warning")
    async with anyio.create_task_group() as tasks:
        subject = Subject(tasks)
        await obey({"start": subject.start, "report": subject.report, "memory": subject.memory, "stop": subject.stop})
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    asyncio.run(main())
