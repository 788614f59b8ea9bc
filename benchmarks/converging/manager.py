"""`python -m benchmarks.converging.manager`: the controller manager with its defaults, and what it takes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from prometheus_client.registry import Collector

from benchmarks.converging.installation import HOST
from benchmarks.process import Effort, peak_bytes, resident_bytes
from benchmarks.worker import obey
from trainer.configuration.configuration import Configuration
from trainer.configuration.sections import LeaderElectionConfiguration, WebhookConfiguration
from trainer.kube.client import DEFAULT_LIST, DEFAULT_WATCH, ListOptions, ObjectList, WatchEvent, WatchOptions
from trainer.kube.clock import SystemClock
from trainer.kube.logs.logs import configure_logging
from trainer.kube.memory import limit_memory
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.controllers import ControllerSeries
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.kube.rest import kubeconfig
from trainer.kube.rest.connection import tune_garbage_collector
from trainer.kube.rest.http import APPLY_CONTENT_TYPE, HttpClient
from trainer.kube.rest.transport import Transport
from trainer.kube.selection import EVERYTHING, Selection
from trainer.manager import build_manager
from trainer.webhooks.handlers import AdmissionHandlers

CONTROLLER = "trainjob"
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_PARTS = 2
"""Of a path below its namespace: resource and name; what follows is a subresource."""


class _CountingClient(HttpClient):
    """Counts requests by verb and resource."""

    requests: Counter[str]

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int | bool | None] | None = None,
        body: Object | Sequence[Object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Object:
        """Count, then send."""
        is_apply = (headers or {}).get("Content-Type") == APPLY_CONTENT_TYPE
        self.requests[f"{'apply' if is_apply else _VERBS[method]} {_what(path)}"] += 1
        return await super().request(method, path, params=params, body=body, headers=headers)

    async def list_page(
        self, resource: Resource, selection: Selection = EVERYTHING, options: ListOptions = DEFAULT_LIST
    ) -> ObjectList:
        """Count, then send."""
        self.requests[f"list {resource.plural}"] += 1
        return await super().list_page(resource, selection, options)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, selection: Selection = EVERYTHING, options: WatchOptions = DEFAULT_WATCH
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """Count, then open."""
        self.requests[f"watch {resource.plural}"] += 1
        async with super().watch(resource, selection, options) as events:
            yield events


def _what(path: str) -> str:
    """The resource of a path, with the subresource."""
    _, _, below = path.partition("/namespaces/")
    parts = below.split("/")[1:] if below else path.split("/")[-_COLLECTION_PARTS:]
    return "/".join(parts[:1] + parts[_COLLECTION_PARTS:])


class Subject:
    """The manager."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._metrics = Metrics()
        self._reconciles = self._metrics.series(ControllerSeries)

    async def start(self, kubeconfig: str, namespace: str, port: int) -> object:
        """Run the manager; answers when its caches are filled and its controllers run.

        Args:
            kubeconfig: names the cluster.
            namespace: of its lease and its certificates.
            port: of its webhooks; 0: neither webhooks nor leader election.
        """
        tune_garbage_collector()
        await anyio.to_thread.run_sync(AdmissionHandlers.prepare)
        started = anyio.Event()
        self._began = Effort.now()
        self._tasks.start_soon(self._run, Path(kubeconfig), namespace, port, started)
        await started.wait()
        return {"seconds": Effort.now().since(self._began).seconds}

    async def _run(self, file: Path, namespace: str, port: int, started: anyio.Event) -> None:
        endpoint, credentials = await kubeconfig.load([file], None, clock=SystemClock())
        async with Transport(endpoint, credentials, user_agent="trainer/benchmark", metrics=self._metrics) as transport:
            self._client = _CountingClient(transport)
            self._client.requests = Counter()
            configuration = _configuration(port) if port else Configuration().without_servers()
            manager = build_manager(self._client, configuration, namespace=namespace, metrics=self._metrics)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(manager.run)
                await manager.wait_for_start()
                started.set()

    async def report(self) -> object:
        """What it has done and taken so far."""
        spent = Effort.now().since(self._began)
        return {
            "cpu_seconds": spent.cpu_seconds,
            "requests": dict(self._client.requests),
            "reconciles": _value(self._reconciles.reconcile_seconds, "_count"),
            "reconcile_seconds": _value(self._reconciles.reconcile_seconds, "_sum"),
            "errors": _value(self._reconciles.reconcile_errors, "_total"),
        }

    async def memory(self) -> object:
        """What it holds, garbage collected, and has held at the most; takes a moment itself."""
        return {"peak": peak_bytes(), "rss": resident_bytes()}


def _configuration(port: int) -> Configuration:
    """As it ships, on one machine: webhooks, leader election, and what follows logs; nobody reads its metrics."""
    webhook = WebhookConfiguration(host=HOST, port=port, hosts=[HOST])
    election = LeaderElectionConfiguration(leader_elect=True)
    return Configuration().without_servers().model_copy(update={"webhook": webhook, "leader_election": election})


def _value(metric: Collector, suffix: str) -> float:
    """Of the controller of TrainJobs; all other series are left out, since to collect them takes milliseconds."""
    return sum(
        sample.value
        for family in metric.collect()
        for sample in family.samples
        if sample.name.endswith(suffix) and sample.labels.get("controller") == CONTROLLER
    )


async def main() -> None:
    """Obey."""
    limit_memory()
    configure_logging()
    async with anyio.create_task_group() as tasks:
        subject = Subject(tasks)
        await obey({"start": subject.start, "report": subject.report, "memory": subject.memory})
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    asyncio.run(main())
