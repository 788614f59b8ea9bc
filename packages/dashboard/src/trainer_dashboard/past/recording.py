"""The recorder of the history in the process of a dashboard, which is served whether or not it can record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from anyio.to_thread import run_sync

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.kube.backoff import Backoff
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.errors import KubeError, causes_of
from trainer.kube.logger import get_logger
from trainer.kube.resource import Resource
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.errors import HistoryError
from trainer_dashboard.history.recorder import Recorder
from trainer_dashboard.history.retention import RetentionOptions

log = get_logger(__name__)

_RETRY: Final = Backoff(initial=2.0, maximum=30.0, jitter=0.2)


@dataclass(frozen=True, slots=True)
class Recording:
    """Records a cluster while `run` does, as `trainer history record` with its defaults.

    It waits while another process records the cluster, as during an update of a Deployment, and while the database or
    the API server does not answer.
    """

    client: Client
    """Its users see TrainJobs converted to v2alpha1."""
    database: Database
    server: str
    """The address of the API server."""
    clock: Clock
    optimization_jobs: Resource = OPTIMIZATION_JOBS
    """As the cluster serves them. Default: as v2alpha1."""

    async def run(self, namespace: str) -> None:
        """Record until cancelled; TrainJobs of this namespace alone, or with "" of all."""
        failures = 0
        while True:
            try:
                await self._record(namespace)
            except* (HistoryError, KubeError) as group:
                log.warning("not recording yet", error=str(causes_of(group)[0]))
            await self.clock.sleep(_RETRY.pause(failures))
            failures += 1

    async def _record(self, namespace: str) -> None:
        await run_sync(self.database.migrate)
        recorder = Recorder(
            self.client,
            self.database,
            RetentionOptions(),
            namespace=namespace or None,
            server=self.server,
            optimization_jobs=self.optimization_jobs,
            clock=self.clock,
        )
        await recorder.run(started=self._announce)

    async def _announce(self) -> None:
        log.info("recording the history", database=self.database.name)
