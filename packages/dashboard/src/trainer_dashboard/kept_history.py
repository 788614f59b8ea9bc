"""The history of a dashboard: what answers from it, and what records it."""

from __future__ import annotations

from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock
from trainer_dashboard.history.database import Database
from trainer_dashboard.past_trainings import PastTrainings
from trainer_dashboard.recording import Recording


def history_of(
    database: Database, client: Client, server: str, *, records: bool, clock: Clock | None = None
) -> tuple[PastTrainings, Recording | None]:
    """What answers from a database, and what records into it if wanted.

    Args:
        database: of the history.
        client: reads the cluster; its TrainJobs are converted to v2alpha1.
        server: the address of the API server.
        records: whether the history is recorded.
        clock: of the recorder.
    """
    past = PastTrainings(database, client, server)
    if not records:
        return past, None
    return past, Recording(client, database, server, clock or SystemClock())
