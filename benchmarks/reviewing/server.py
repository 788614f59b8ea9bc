"""`python -m benchmarks.reviewing.server`: the webhooks as the manager serves them, and what they take."""

from __future__ import annotations

import asyncio

import anyio
from anyio.abc import TaskGroup

from benchmarks.converging.load import runtime
from benchmarks.process import Effort, resident_bytes
from benchmarks.worker import obey
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.controllers.trainjob import TrainJobController
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.plugin_context import CacheReader
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.manager import Manager
from trainer.kube.rest.connection import tune_garbage_collector
from trainer.kube.serving.certificates import SelfSignedCertificates
from trainer.kube.webhook.server import WebhookServer, WebhookServerOptions
from trainer.manager import built_in_plugins
from trainer.webhooks.handlers import AdmissionHandlers
from trainer.webhooks.live_runtimes import LiveRuntimes
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient

HOST = "127.0.0.1"


class Subject:
    """The webhooks, with one runtime in their cache."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks

    async def start(self, namespace: str) -> object:
        """Serve; answers with the port."""
        tune_garbage_collector()
        await anyio.to_thread.run_sync(AdmissionHandlers.prepare)
        client = FakeClient(resources=[TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS])
        client.add(runtime(namespace))
        manager = Manager(client)
        reader = CacheReader()
        pipeline = Pipeline(built_in_plugins(reader), metrics=manager.metrics)
        controller = TrainJobController(manager, pipeline, reader)
        options = WebhookServerOptions(host=HOST, port=0)
        server = WebhookServer(manager, certificates=SelfSignedCertificates(), options=options)
        runtimes = LiveRuntimes(controller.runtimes, manager.api_reader)
        AdmissionHandlers(pipeline, runtimes, metrics=manager.metrics).register(server)
        self._tasks.start_soon(manager.run)
        await manager.wait_for_start()
        await server.wait_for_start()
        return {"port": server.address[1]}

    async def report(self) -> object:
        """The processor time and memory that it has taken so far."""
        return {"cpu_seconds": Effort.now().cpu_seconds, "rss": resident_bytes()}


async def main() -> None:
    """Obey until standard input ends."""
    configure_logging(json=True, level="warning")
    async with anyio.create_task_group() as tasks:
        subject = Subject(tasks)
        await obey({"start": subject.start, "report": subject.report})
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    asyncio.run(main())
